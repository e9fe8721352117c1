"""``equicaps train --processes 2`` as a user sees it: one voice, one exit code, and no sign of torchrun."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from typer.testing import CliRunner

from equicaps.cli import processes as module
from equicaps.cli.main import app
from equicaps.errors import TrainingError, UsageError
from equicaps.training import load_checkpoint
from equicaps.training.checkpoint import CHECKPOINT

OPTIONS = ("--size", "32", "--batch", "8", "--preset", "steerable_cnn", "--processes", "2", "--save-every", "0")
SECONDS = 120


@pytest.fixture
def cells(tmp_path):
    """So few images that evaluations take no time."""
    for number in range(6):
        path = tmp_path / "cells" / ("round" if number % 2 else "long") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 20 * number).save(path)
    return str(tmp_path / "cells")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "run"


def start(*words):
    """In a process group of its own, which gets Ctrl-C as the one in the foreground of a terminal does."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    return subprocess.Popen(
        [sys.executable, "-m", "equicaps.cli.main", *map(str, words)], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def finish(process):
    """The exit code, standard output, and the lines on standard error, none of which is torchrun's."""
    output, errors = process.communicate(timeout=SECONDS)
    assert "Traceback" not in errors
    assert "elastic" not in errors
    return process.returncode, output, errors.splitlines()


def environment_of(pid):
    entries = Path(f"/proc/{pid}/environ").read_text().split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


@pytest.fixture
def training(cells, out):
    """A training that has saved its first checkpoint, and the environments of its processes by their ids."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("finds the processes in /proc")
    process = start("train", cells, "--steps", "40", "--out", out, *OPTIONS)
    deadline = time.monotonic() + SECONDS
    while not (out / CHECKPOINT).exists():
        assert process.poll() is None, finish(process)
        assert time.monotonic() < deadline
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    yield process, {int(environment_of(pid)["RANK"]): int(pid) for pid in children}
    process.kill()
    process.communicate()


def press_ctrl_c(process):
    os.killpg(process.pid, signal.SIGINT)


def test_a_training_prints_its_result_once(cells, out):
    code, output, lines = finish(start("train", cells, "--steps", "2", "--out", out, "--json", *OPTIONS))
    assert code == 0, lines
    result = json.loads(output)
    assert result["processes"] == 2
    assert result["step"] == 2
    assert sum("parameters" in line for line in lines) == 1
    assert sum(line.startswith("model: ") for line in lines) == 1


def listening(pid):
    """The addresses, in hexadecimal, at which a process and its children wait for others."""
    sockets = {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir() if link.exists() or link.is_symlink()}
    rows = [line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}


def test_ctrl_c_saves_after_the_current_step_and_says_so_in_one_line(training, out):
    """Meanwhile, no other machine can reach the processes."""
    process, ranks = training
    assert {environment_of(pid)["OMP_NUM_THREADS"] for pid in ranks.values()} == {"1"}
    found = set().union(*(listening(pid) for pid in (process.pid, *ranks.values())))
    assert found == {"0100007F"}  # 127.0.0.1, and not 00000000, which is every interface
    with socket.create_server(("", 0)):  # control
        assert "00000000" in listening(os.getpid())
    press_ctrl_c(process)
    code, _, (_, _, _, *lines) = finish(process)
    assert code == 1
    step = load_checkpoint(out)[1]["step"]
    assert lines == [f"stopped after {step} steps; everything is saved. Continue with --resume --out {out}"]
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks.values())


def test_a_second_ctrl_c_ends_the_training_at_once(training, out):
    process, ranks = training
    press_ctrl_c(process)
    time.sleep(0.2)
    press_ctrl_c(process)
    code, _, lines = finish(process)
    assert code == 1
    assert lines[-1] == "error: interrupted; what was saved before is unchanged."
    assert load_checkpoint(out)[1]["step"] >= 1
    assert not any(Path(f"/proc/{pid}").exists() for pid in ranks.values())


def test_a_killed_process_is_reported_in_one_line_and_one_process_resumes(training, cells, out):
    process, ranks = training
    os.kill(ranks[1], signal.SIGKILL)
    code, _, (_, _, _, *lines) = finish(process)
    assert code == 1
    assert len(lines) == 1
    assert lines[0].startswith(("error: lost another process", "error: process 2 of 2 ended unexpectedly (SIGKILL)"))
    again = CliRunner().invoke(app, ["train", cells, "--resume", "--out", str(out)])
    assert again.exit_code == 0, again.output
    assert load_checkpoint(out)[1]["step"] == 40


def test_a_usage_error_that_all_processes_find_is_reported_once(out):
    code, _, lines = finish(start("train", "nowhere", "--processes", "2", "--out", out))
    assert code == 2
    [line] = lines
    assert line.startswith("error: 'nowhere' is neither a data set (digits, mnist, galaxies), nor a folder of images")


def test_a_usage_error_that_only_the_first_process_finds_is_reported_once(cells, tmp_path):
    """Nobody may write there: the others notice only that the first one is gone."""
    (tmp_path / "file").write_text("")
    process = start("train", cells, "--steps", "2", "--out", tmp_path / "file" / "run", *OPTIONS)
    code, _, (_, _, _, *lines) = finish(process)
    assert code == 1
    assert lines == [f"error: cannot create the folder {tmp_path}/file/run: Not a directory."]


def test_settings_are_checked_before_anything_is_launched(monkeypatch, out):
    monkeypatch.setattr("equicaps.cli.train.launch", lambda processes: pytest.fail("launched"))
    refused = CliRunner().invoke(app, ["train", "digits", "--rate", "-1", "--out", str(out), *OPTIONS])
    assert refused.exit_code == 2
    assert "`rate` must be a positive number" in refused.stderr


def test_the_exit_code_of_the_launched_command_is_that_of_this_one(monkeypatch, out):
    monkeypatch.setattr("equicaps.cli.train.launch", lambda processes: 10 + processes)
    assert CliRunner().invoke(app, ["train", "digits", "--out", str(out), *OPTIONS]).exit_code == 12


def test_under_torchrun_no_more_processes_are_launched(monkeypatch):
    for name in module.TORCHRUN:
        monkeypatch.setenv(name, "0")
    with pytest.raises(UsageError, match="leave out --processes"):
        module.launch(2)


@pytest.fixture
def launch(monkeypatch):
    """Launch with a torchrun that ends in an error."""

    def fail(error):
        for name in ("OMP_NUM_THREADS", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"):
            monkeypatch.setenv(name, "1")  # so that they are restored
        monkeypatch.setattr(module.logging, "disable", lambda level: None)
        monkeypatch.setattr(module, "run", error)
        return module.launch(2)

    return fail


def test_two_signals_are_an_interruption_and_one_is_a_request_to_stop(launch):
    """As torchrun reports them: the second while it waits for the processes to end."""

    def one(_):
        raise SignalException("first", signal.SIGINT)

    def two(_):
        try:
            one(_)
        finally:
            one(_)

    assert launch(one) == 1
    with pytest.raises(KeyboardInterrupt):
        launch(two)


@pytest.mark.parametrize(
    ("exits", "message"),
    [
        ({0: 2}, None),
        ({1: -signal.SIGKILL, 0: 2}, None),
        ({0: -signal.SIGKILL, 1: 1}, "process 1 of 2 ended unexpectedly (SIGKILL): continue from the last checkpoint"),
        ({1: 3, 0: -signal.SIGTERM}, "process 2 of 2 ended unexpectedly (exit code 3)"),
    ],
)
def test_the_launcher_reports_what_the_first_process_cannot(launch, exits, message):
    """In the order in which the processes ended."""

    def failed(_):
        failures = {rank: ProcessFailure(rank, 1, code, "") for rank, code in exits.items()}
        raise ChildFailedError("equicaps", failures)

    if message is None:
        assert launch(failed) == 2
    else:
        with pytest.raises(TrainingError, match=re.escape(message)):
            launch(failed)
