import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]


def broken_links(page: Path, text: str) -> list[str]:
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    return [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page):
    assert not broken_links(page, page.read_text())


def test_that_check_notices_a_dead_link():
    assert broken_links(ROOT / "README.md", "[x](docs/nowhere.md) and [y](README.md)") == ["docs/nowhere.md"]
