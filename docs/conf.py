"""The documentation site: ``make docs`` writes it to ``docs/_build/html``. It is built and read without a network.

Pages are the Markdown files that are also read in the repository; figures on them are written by programs (see
CONTRIBUTING.md), never typed in.
"""

import hashlib
import sys
import typing
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions")]
typing.GENERATING_DOCUMENTATION = "equicaps"  # type: ignore[attr-defined] # jaxtyping then leaves its own name out

import equicaps  # noqa: E402

SOURCE = Path(equicaps.__file__).parent
OPTIONAL = ("serve", "galaxies")
"""Pages for which index.md leaves room: a checkout need not have them."""

project = "equicaps"
author = "The equicaps developers"
release = version = equicaps.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
]
exclude_patterns = ["_build", "_static", "**.ipynb_checkpoints"]
highlight_language = "none"

html_theme = "furo"
html_title = f"equicaps {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = html_show_copyright = False
pygments_style, pygments_dark_style = "friendly", "github-dark"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
add_module_names = False
maximum_signature_line_length = 90
napoleon_use_ivar = True


def _fingerprint() -> str:
    """Of everything that a notebook's outputs depend on, the trained weights included."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


nb_execution_mode = "cache"  # once for each state of notebook and package
nb_execution_cache_path = str(DOCS / "_build" / f"notebooks-{_fingerprint()}")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True


def setup(app: Sphinx) -> None:
    app.connect("source-read", _without_absent_pages)
    app.connect("autodoc-process-docstring", _without_numbers)


def _without_absent_pages(app: Sphinx, page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        absent = {name for name in OPTIONAL if name not in app.env.found_docs}
        source[0] = "\n".join(line for line in source[0].splitlines() if line not in absent)


def _without_numbers(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """The fields of a named tuple need not say "Alias for field number 0"."""
    lines[:] = [line for line in lines if not line.startswith("Alias for field number")]
