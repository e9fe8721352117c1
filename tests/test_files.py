"""Two processes never write into one folder."""

import contextlib
import errno
import os
import signal

import pytest
from small_training import ROTATED, config, digits, network

from equicaps._files import LOCK, lock_folder
from equicaps.errors import UsageError
from equicaps.training import load_checkpoint, train


def run(folder, **options):
    return train(config(2), digits(), ROTATED, folder=folder, network=network(), **options)


def lock_and_leave(folder):
    with lock_folder(folder, wait=False):
        pass


@pytest.fixture
def holder(tmp_path):
    """A process that holds the folder until it is killed."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        with lock_folder(tmp_path, wait=False):
            os.write(tell, b"!")
            signal.pause()
        os._exit(0)
    assert os.read(ready, 1) == b"!"
    yield child
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(tell)


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_in_use_is_refused_with_the_process_that_uses_it(holder, tmp_path, resume):
    message = rf"process {holder} on \S+ is using {tmp_path}: wait for it, or choose another folder\."
    with pytest.raises(UsageError, match=message):
        run(tmp_path, resume=resume)
    assert os.listdir(tmp_path) == [LOCK]  # nothing was touched


def test_a_lock_file_that_is_gone_names_nobody(tmp_path, monkeypatch):
    """It may be removed between the refusal and the look at who holds it."""

    def gone(path):
        raise FileNotFoundError(path)

    with lock_folder(tmp_path, wait=False):
        monkeypatch.setattr("pathlib.Path.read_text", gone)
        with pytest.raises(UsageError, match="another process is using"):
            lock_and_leave(tmp_path)


def test_a_killed_process_holds_nothing(tmp_path):
    child = os.fork()
    if child == 0:
        with lock_folder(tmp_path, wait=False):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / LOCK).read_text().startswith(f"process {child} on ")  # it did hold the folder
    assert run(tmp_path).finished


def test_a_training_holds_its_folder_until_it_ends(tmp_path):
    def watch(progress):
        with pytest.raises(UsageError, match=f"process {os.getpid()}"):
            lock_and_leave(tmp_path)

    run(tmp_path, watch=watch)
    lock_and_leave(tmp_path)


def test_a_training_that_fails_or_is_refused_releases_its_folder(tmp_path):
    class PowerCutError(Exception):
        pass

    def watch(progress):
        raise PowerCutError

    with pytest.raises(PowerCutError):
        run(tmp_path, watch=watch)
    run(tmp_path, resume=True)
    with pytest.raises(UsageError, match="resume it"):
        run(tmp_path)
    lock_and_leave(tmp_path)
    assert load_checkpoint(tmp_path)[1]["step"] == 2


def test_a_file_system_without_locks_is_used_without_them(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOTSUP, "not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert run(tmp_path).finished
