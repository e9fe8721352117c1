"""Every entry of docs/paper_map.md names an object and a test that exist."""

import ast
import pkgutil
import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
HEADER = ["paper", "object", "test"]
PACKAGES = ("equicaps.", "reproduction.")


class Entry(NamedTuple):
    paper: str
    objects: tuple[str, ...]
    tests: tuple[str, ...]


def parse(text: str) -> list[Entry]:
    """The rows of the first table."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert rows, "the paper map has no table"
    assert rows[0] == HEADER, f"the columns must be {HEADER}, but are {rows[0]}"
    assert all(len(row) == len(HEADER) for row in rows), "a row has too many or too few cells"
    return [Entry(paper, *(tuple(re.findall(r"`([^`]+)`", cell)) for cell in cells)) for paper, *cells in rows[2:]]


def problems(entry: Entry) -> list[str]:
    """What is wrong with an entry, as sentences."""
    found = []
    if not entry.objects:
        found.append(f"{entry.paper}: names no object")
    if not entry.tests:
        found.append(f"{entry.paper}: names no test")
    found += [f"{entry.paper}: no object {name}" for name in entry.objects if not object_exists(name)]
    found += [f"{entry.paper}: no test {name}" for name in entry.tests if not defines_test(name)]
    return found


def object_exists(dotted: str) -> bool:
    """Whether the dotted path leads to an object of the library or of its reproduction."""
    if not dotted.startswith(PACKAGES):
        return False
    try:
        pkgutil.resolve_name(dotted)
    except (ImportError, AttributeError):
        return False
    return True


def defines_test(node: str) -> bool:
    """Whether the file defines the test, without importing it."""
    path, _, name = node.partition("::")
    if not name.startswith("test_") or not (ROOT / path).is_file():
        return False
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return name in {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}


ENTRIES = parse((ROOT / "docs" / "paper_map.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.paper)
def test_every_entry_exists(entry: Entry):
    assert problems(entry) == []


def test_the_map_names_the_algorithm_and_both_theorems():
    """Guard: the test above is not empty."""
    papers = " ".join(entry.paper for entry in ENTRIES)
    assert all(
        item in papers for item in ("Algorithm 1", "Theorem 1", "Theorem 2", "Eq. 1", "Appendix B", "Appendix C")
    )


def test_a_made_up_object_is_rejected():
    """Control: the object must exist, and in one of our packages."""
    real = "tests/docs/test_paper_map.py::test_a_made_up_object_is_rejected"
    assert problems(Entry("real", ("equicaps.functional.route", "reproduction.table1a.table1a"), (real,))) == []
    made_up = ("equicaps.functional.rout", "equicaps.nowhere.route", "equicaps.groups.SO2.nothing", "reproduction.none")
    for name in (*made_up, "torch.nn"):
        assert problems(Entry("made up", (name,), (real,))) == [f"made up: no object {name}"]


def test_a_made_up_test_is_rejected():
    """Control: the test must exist, and be a test."""
    here = "tests/docs/test_paper_map.py"
    for name in (f"{here}::test_nothing", "tests/docs/test_nowhere.py::test_nothing", here, f"{here}::problems"):
        assert problems(Entry("made up", ("equicaps.functional.route",), (name,))) == [f"made up: no test {name}"]


def test_an_entry_without_object_or_test_is_rejected():
    """Control: empty cells are not enough."""
    assert problems(Entry("bare", (), ())) == ["bare: names no object", "bare: names no test"]


def test_a_map_without_a_table_is_rejected():
    """Control: a page without rows does not pass as a page without problems."""
    with pytest.raises(AssertionError, match="no table"):
        parse("# Paper map\n\nNothing yet.\n")
    assert parse("| paper | object | test |\n|---|---|---|\n") == []
