"""The README's program prints what the README says, and the examples run."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_readme_program_prints_what_the_readme_shows():
    """Word for word but for the last digits, which depend on the machine."""
    readme = (ROOT / "README.md").read_text()
    program, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    printed = run("-c", program).splitlines()
    for actual, expected in zip(printed, shown.splitlines(), strict=True):
        (*words, figure), (*expected_words, expected_figure) = actual.split(), expected.split()
        assert words == expected_words
        assert float(figure) == pytest.approx(float(expected_figure), rel=0.1, abs=1e-5)


def test_theorems_hold_for_every_group_with_its_control():
    table = run("examples/theorems.py")
    assert table.count("holds") == 16
    assert "FAILS" not in table


def test_example_of_a_new_group_is_short_and_names_the_mistake():
    source = (ROOT / "examples" / "your_own_group.py").read_text()
    lines = re.search(r"# --8<-- the group\n(.*?)# --8<-- end", source, re.DOTALL).group(1).strip().splitlines()
    assert len(lines) < 40
    printed = run("examples/your_own_group.py")
    assert "Heisenberg: all laws hold" in printed
    assert "FAIL inverse_undoes" in printed
