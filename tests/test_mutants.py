"""Trying all mutants takes long (``make mutants``); that each can still be made takes no time."""

from collections import Counter

import mutants
import pytest
from mutants import ROOT
from mutations import MUTANTS
from mutations.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_occurs_once_and_its_tests_exist(mutant):
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.before) == 1
    assert mutant.after != mutant.before
    assert mutant.tests
    assert all((ROOT / "tests" / name.partition("::")[0]).is_file() for name in mutant.tests)


def test_names_are_unique_and_fit_into_a_table():
    names = Counter(mutant.name for mutant in MUTANTS)
    assert names.most_common(1)[0][1] == 1
    assert not any("|" in name for name in names)


@pytest.mark.parametrize("room", ["losses.py", "training", "images", "data", "inference", "reproduction"])
def test_every_room_has_at_least_six_mutants(room):
    start = room if room == "reproduction" else f"src/equicaps/{room}"
    assert sum(mutant.file.startswith(start) for mutant in MUTANTS) >= 6


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """One function with a test, under options that leave failed tests out of pytest's summary."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "-q -rs"\n')
    (tmp_path / "source.py").write_text("def double(x):\n    return 2 * x  # not 3\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_source.py").write_text(
        "from source import double\n\n\ndef test_double():\n    assert double(2) == 4\n"
    )
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("2 * x", "3 * x", ("killed", "tests/test_source.py::test_double")),
        ("not 3", "not 4", ("SURVIVED", "pytest ended with 0")),
        ("def double", "def triple", ("BROKEN", "pytest ended with 2")),
        ("4 * x", "5 * x", ("STALE", "4 * x occurs 0 times")),
    ],
)
def test_only_a_mutant_that_a_test_notices_is_killed(repository, before, after, expected):
    assert mutants.verdict(Mutant("mutant", "source.py", before, after, ("test_source.py",))) == expected
    assert "2 * x  # not 3" in (repository / "source.py").read_text()
