"""The mutants themselves take hours; that each can still be made takes none."""

import pytest
from mutants import MUTANTS, ROOT


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there_once(mutant):
    assert (ROOT / "src" / "equicaps" / mutant.file).read_text(encoding="utf-8").count(mutant.before) == 1
    assert mutant.after != mutant.before
