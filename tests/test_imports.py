"""Names are there at once, what is behind them when it is asked for."""

import subprocess
import sys

import equicaps
from equicaps import groups

PROGRAM = """
import sys
import equicaps
print("torch" in sys.modules, set(dir(equicaps)) >= set(equicaps.__all__))
equicaps.nn
print("torch" in sys.modules, "roma" in sys.modules, "torch._dynamo" in sys.modules)
from equicaps.groups import *
print(SO3(), SE3(), "roma" in sys.modules)
"""


def test_torch_and_roma_are_imported_when_they_are_needed():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False True", "True False False", "SO(3) SE(3) True"]


def test_every_public_name_is_listed_and_there():
    """What a shell completes, and what the API pages show."""
    for module in (equicaps, groups):
        assert set(dir(module)) >= set(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)
        assert not hasattr(module, "SO4")
