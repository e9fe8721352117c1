"""Links and pictures on the pages lead to files, and index.md leads a newcomer to the pages that matter."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
NEWCOMER = ("start.md", "own_data.md", "guarantees.md", "paper_map.md", "architecture.md")
"""How to predict, how to train on a folder, the guarantee, the paper map, the architecture."""


def targets(text: str) -> list[str]:
    """The relative files to which a page links, or which it shows."""
    return re.findall(r"""(?:\]\(|<img src=")([^)"#:]+)(?:#[^)"]*)?[)"]""", text)


def broken_links(page: Path, text: str) -> list[str]:
    return [target for target in targets(text) if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_resolve(page):
    assert not broken_links(page, page.read_text(encoding="utf-8"))


def test_that_check_notices_a_dead_link():
    """Control."""
    text = '[x](docs/nowhere.md#here), [y](README.md), <img src="docs/nothing.png" width="1"> and [z](https://a.b/c)'
    assert broken_links(ROOT / "README.md", text) == ["docs/nowhere.md", "docs/nothing.png"]


def test_the_index_links_to_what_a_newcomer_looks_for():
    assert set(NEWCOMER) <= set(targets((ROOT / "docs" / "index.md").read_text(encoding="utf-8")))
