"""Some seeded attempts of every kind of attack; ``make attack`` makes many more."""

import os
import signal
import time

import pytest

from attack.__main__ import KINDS, attempts
from attack.children import outcome


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what)
def test_the_library_survives(kind):
    found = attempts(kind, kind.short, seed=0)
    assert len(found) == kind.short
    assert not [problem for problem in found if problem]


@pytest.mark.parametrize(
    ("attempt", "problem"),
    [
        (lambda: time.sleep(30), "still running after 1 seconds"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended by signal SIGKILL"),
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: len(bytearray(2**32)) and None, "MemoryError"),
        (lambda: "the wrong answer \udcff", "the wrong answer"),
        (lambda: os._exit(0), "ended without a word"),
    ],
    ids=["endless", "crash", "trace", "memory", "wrong", "silent"],
)
def test_that_measurement_notices(tmp_path, attempt, problem):
    """Control: what should fail does."""
    assert problem in outcome(attempt, tmp_path / "report", seconds=1)
    assert outcome(lambda: None, tmp_path / "report") is None
