"""Configuration of the documentation site, which ``make docs`` writes to ``docs/_build/html``.

The site is built and read offline. Its pages are the Markdown files that can also be read in the repository; programs
write the measured numbers on them (see CONTRIBUTING.md).
"""

import hashlib
import sys
import typing
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_extensions")]
typing.GENERATING_DOCUMENTATION = "equicaps"  # type: ignore[attr-defined] # jaxtyping then omits its own name

import equicaps  # noqa: E402

SOURCE = Path(equicaps.__file__).parent

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
strip_signature_backslash = True  # otherwise the underscore of `classes_` is taken for a link
maximum_signature_line_length = 90
napoleon_use_ivar = True


def _fingerprint() -> str:
    """A hash of everything that the outputs of a notebook depend on, including the trained weights."""
    digest = hashlib.sha256()
    for path in sorted(SOURCE.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


nb_execution_mode = "cache"  # run a notebook again only when it or the package has changed
nb_execution_cache_path = str(DOCS / "_build" / f"notebooks-{_fingerprint()}")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _without_field_numbers)


def _without_field_numbers(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Drop "Alias for field number 0" and the like from the fields of named tuples: it says nothing."""
    lines[:] = [line for line in lines if not line.startswith("Alias for field number")]
