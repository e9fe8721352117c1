"""SIGKILL at any moment, also in the middle of writing a checkpoint: the training resumes."""

import contextlib
import os
import random
import signal
import time

import pytest
import torch
from small_training import ROTATED, config, digits, network

from equicaps.training import load_checkpoint, train
from equicaps.training.checkpoint import CHECKPOINT, PREVIOUS

STEPS = 12


def run(folder, steps=STEPS, **options):
    torch.manual_seed(5)
    return train(config(steps), digits(), ROTATED, folder=folder, network=network(), resume=True, **options)


def start(function):
    """Run in a child process, which shares only the disk with this one."""
    child = os.fork()
    if child == 0:
        try:
            function()
        finally:
            os._exit(3)
    return child


def outcome(child):
    _, status = os.waitpid(child, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def kill_self(*_args, **_options):
    os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    """A file whose process is killed when half of the content is written."""

    def __init__(self, path, mode):
        self.file = open(path, mode, buffering=0)  # noqa: SIM115 - it is a context manager itself

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, content):
        self.file.write(content[: len(content) // 2])
        kill_self()


def die_while(moment, monkeypatch, folder):
    """Train, and be killed at the given moment of writing the checkpoint of the fourth step."""
    replace = os.replace

    def before(target):
        def stop(source, destination):
            if os.path.basename(destination) == target:
                kill_self()
            replace(source, destination)

        return stop

    def arm(progress):
        if progress.step < 4:
            return
        if moment == "writing":
            monkeypatch.setattr("equicaps._files.open", Dying, raising=False)
        elif moment == "syncing":
            monkeypatch.setattr("os.fsync", kill_self)
        else:
            monkeypatch.setattr("os.replace", before({"keeping": PREVIOUS, "replacing": CHECKPOINT}[moment]))

    run(folder, watch=arm)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    folder = tmp_path_factory.mktemp("straight")
    run(folder)
    return load_checkpoint(folder)[0]


@pytest.mark.parametrize("moment", ["writing", "syncing", "keeping", "replacing"])
def test_killed_at_every_stage_of_writing_a_checkpoint_it_resumes_bit_for_bit(moment, straight, tmp_path, monkeypatch):
    child = start(lambda: die_while(moment, monkeypatch, tmp_path))
    assert outcome(child) == -signal.SIGKILL
    partial = tmp_path / f".{CHECKPOINT}.partial"
    assert partial.exists()  # it did die while writing
    assert (tmp_path / CHECKPOINT).exists() == (moment != "replacing")
    assert load_checkpoint(tmp_path)[1]["step"] == 3
    assert run(tmp_path).finished
    assert not partial.exists()
    found = load_checkpoint(tmp_path)[0]
    assert all(torch.equal(found[name], value) for name, value in straight.items())


def appears(path, newer_than):
    """Wait for a file, or for the next version of it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_mtime_ns > newer_than:
                return
    raise TimeoutError(path)


def on_a_slow_disk(folder):
    """Train so that most of the time is spent writing."""
    sync = os.fsync
    os.fsync = lambda descriptor: (time.sleep(0.03), sync(descriptor))
    run(folder, steps=100_000)


def test_killed_at_random_moments_it_always_resumes(tmp_path):
    """Ten times, each after the first checkpoint of the process; every second one as soon as it writes the next."""
    moments = random.Random(0)
    partial = tmp_path / f".{CHECKPOINT}.partial"
    reached, torn = [], 0
    for attempt in range(10):
        started = time.time_ns()
        child = start(lambda: on_a_slow_disk(tmp_path))
        appears(tmp_path / CHECKPOINT, started)
        if attempt % 2:
            appears(partial, started)
        time.sleep(moments.random() * (0.01 if attempt % 2 else 0.1))
        os.kill(child, signal.SIGKILL)
        assert outcome(child) == -signal.SIGKILL
        torn += partial.exists()
        reached.append(load_checkpoint(tmp_path)[1]["step"])
    assert reached == sorted(set(reached))  # always ahead of the one before
    assert torn > 0  # some of them died while writing
