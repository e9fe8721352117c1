"""The real command under load, briefly: no errors, its memory returned, and silence when Ctrl-C ends it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")
def test_the_command_answers_many_clients_and_ends_quietly():
    command = [sys.executable, "benchmarks/serve.py", "--clients", "12", "--seconds", "2"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answered"] > 0
    assert found["errors"] == {}
    assert found["exit"] == {"code": 0, "lines_on_standard_error": 0}
    memory = found["megabytes"]
    assert memory["before"] <= memory["peak"] < 600
    assert memory["after"] - memory["before"] < 40
    assert 0 < found["seconds_of_an_answer"]["p50"] <= found["seconds_of_an_answer"]["p99"]
