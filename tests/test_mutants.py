"""Trying all mutants takes long (``make mutants``); that each can still be made takes no time."""

from collections import Counter

import pytest
from mutants import ROOT
from mutations import MUTANTS


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
