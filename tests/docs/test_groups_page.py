"""The table of docs/groups.md is what its generator writes."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_groups", DOCS / "make_groups.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page() -> str:
    return (DOCS / "groups.md").read_text(encoding="utf-8")


def test_the_table_is_current(generator, page):
    assert generator.is_current(page)
    generator.main(["--check"])


def test_a_changed_table_is_noticed(generator, page):
    """Control: another dimension, a lost row."""
    row = next(line for line in page.splitlines() if "| SO(2) |" in line)
    assert not generator.is_current(page.replace(row, row.replace("| 2 |", "| 3 |", 1)))
    assert not generator.is_current(page.replace(row + "\n", ""))


def test_check_of_a_changed_table_exits_with_a_message(generator, page, tmp_path, monkeypatch):
    """Control: --check fails, changes nothing, and writing repairs."""
    copy = tmp_path / "groups.md"
    changed = page.replace("| SO(2) |", "| SO(5) |", 1)
    copy.write_text(changed, encoding="utf-8")
    monkeypatch.setattr(generator, "PAGE", copy)
    with pytest.raises(SystemExit, match="out of date"):
        generator.main(["--check"])
    assert copy.read_text(encoding="utf-8") == changed
    generator.main([])
    assert copy.read_text(encoding="utf-8") == page


def test_a_group_without_a_row_is_noticed(generator):
    examples = {call: group for call, group in generator.EXAMPLES.items() if call != "SE3()"}
    with pytest.raises(SystemExit, match="SE3"):
        generator.table(examples)


def test_a_page_without_markers_is_refused(generator, page):
    with pytest.raises(SystemExit, match="marker"):
        generator.updated(page.replace(generator.END, ""))


def test_every_row_has_every_cell(generator):
    """A vertical bar of a formula does not split its cell."""
    rows = generator.table().splitlines()
    cells = {row.replace(r"\|", "").count("|") for row in rows}
    assert len(rows) == len(generator.EXAMPLES) + 2
    assert cells == {len(generator.COLUMNS) + 2}
