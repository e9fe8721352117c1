"""Formulas as MathML, rendered when the site is built: they need no script, no font and no network in the browser."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def mathml(formula: str, *, block: bool) -> str:
    """The formula as a MathML element. As in Sphinx, ``\\\\`` separates lines and ``&`` aligns them."""
    if r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{align*}}{formula}\end{{align*}}"
    return convert(formula, display="block" if block else "inline")


def visit(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    """Write one formula; a formula that cannot be converted is a warning."""
    block = isinstance(node, nodes.math_block)
    try:
        element = mathml(node.astext(), block=block)
    except Exception as error:  # the converter raises all kinds of errors for a formula that it cannot read
        logger.warning("no MathML for %r: %r", node.astext(), error, location=node)
        element = writer.encode(node.astext())
    writer.body.append(f'<div class="math">{element}</div>\n' if block else element)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer with Sphinx."""
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
