"""Formulas as MathML, made while the site is built: no script, no font, no network, in every current browser."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)


def mathml(formula: str, *, block: bool) -> str:
    """The formula as an element; several lines as in Sphinx, ``\\\\`` between them and ``&`` where they align."""
    if r"\\" in formula and r"\begin" not in formula:
        formula = rf"\begin{{align*}}{formula}\end{{align*}}"
    return convert(formula, display="block" if block else "inline")


def visit(writer: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    try:
        element = mathml(node.astext(), block=block)
    except Exception as error:  # whatever the converter raises: a formula that it cannot read is the page's mistake
        logger.warning("no MathML for %r: %r", node.astext(), error, location=node)
        element = writer.encode(node.astext())
    writer.body.append(f'<div class="math">{element}</div>\n' if block else element)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit, None), (visit, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
