"""The table of speeds, on one small network and for moments: that it runs, not what it says."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_table_of_training_steps_is_printed_and_written(tmp_path):
    command = ["benchmarks/train_step.py", "--quick", "--only", "plain_cnn", "--seconds", "0.1"]
    done = subprocess.run(
        [sys.executable, *command, "--json", tmp_path / "speed.json"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "106,154" in done.stdout
    [row] = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert 0 < row["fraction_of_peak"] < 1
    assert row["inference"] > row["training"] > 1
    assert 1 < row["peak_mib"] < 1200
