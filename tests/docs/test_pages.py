"""The Python blocks of the documentation run, and print what the page says they print."""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.glob("*.md"))
BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```$(?:\s*^```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL)


def run(text: str, name: str) -> int:
    """Execute the blocks of one page in one namespace, compare what each prints, and count them."""
    namespace: dict[str, Any] = {"__name__": name}
    count = 0
    for block in BLOCK.finditer(text):
        first_line = text.count("\n", 0, block.start("code"))
        code = compile("\n" * first_line + block["code"], name, "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, namespace)
        assert printed.getvalue() == (block["output"] or ""), f"{name}:{first_line + 1} prints something else"
        count += 1
    return count


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_python_block_runs_and_prints_what_the_page_shows(page: Path):
    text = page.read_text(encoding="utf-8")
    assert run(text, page.name) == text.count("```python")


def test_there_are_pages_with_python_blocks():
    """Guard: the test above is not empty."""
    assert sum("```python" in page.read_text(encoding="utf-8") for page in PAGES) >= 3


def test_a_block_that_fails_is_noticed():
    """Control."""
    with pytest.raises(NameError):
        run("```python\nnowhere\n```\n", "made_up.md")


def test_output_that_differs_from_the_page_is_noticed():
    """Control."""
    page = "```python\nprint(1 + 1)\n```\n\n```text\n{}\n```\n"
    assert run(page.format(2), "made_up.md") == 1
    with pytest.raises(AssertionError, match="prints something else"):
        run(page.format(3), "made_up.md")


def test_blocks_of_a_page_share_a_namespace():
    assert run("```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n", "made_up.md") == 2
