"""Two processes never write into one folder."""

import os
import signal

import pytest
from small_training import TURNED, config, digits, network

from equicaps._files import LOCK, FolderLock
from equicaps.errors import UsageError
from equicaps.training import fit, load_checkpoint

pytest.importorskip("fcntl")


def run(folder, **options):
    return fit(config(2), network(), digits(), TURNED, folder=folder, **options)


@pytest.fixture
def holder(tmp_path):
    """A process that holds the folder until it is killed."""
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        lock = FolderLock(tmp_path)
        os.write(tell, b"!")
        signal.pause()
        lock.release()
        os._exit(0)
    assert os.read(ready, 1) == b"!"
    yield child
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(ready)
    os.close(tell)


@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_in_use_is_refused_by_the_process_that_uses_it(holder, tmp_path, resume):
    with pytest.raises(UsageError, match=rf"process {holder} on \S+ is training in {tmp_path}: wait for it, or choose"):
        run(tmp_path, resume=resume)
    assert os.listdir(tmp_path) == [LOCK]  # nothing was touched


def test_a_killed_process_holds_nothing(tmp_path):
    child = os.fork()
    if child == 0:
        lock = FolderLock(tmp_path)
        os.kill(os.getpid(), signal.SIGKILL)
        lock.release()
    os.waitpid(child, 0)
    assert (tmp_path / LOCK).read_text().startswith(f"process {child} on ")  # it did hold it
    assert run(tmp_path).finished


def test_a_training_holds_its_folder_until_it_ends(tmp_path):
    def watch(progress):
        with pytest.raises(UsageError, match=f"process {os.getpid()}"):
            FolderLock(tmp_path)

    run(tmp_path, watch=watch)
    FolderLock(tmp_path).release()


def test_a_training_that_fails_or_is_refused_lets_go(tmp_path):
    class PowerCutError(Exception):
        pass

    def watch(progress):
        raise PowerCutError

    with pytest.raises(PowerCutError):
        run(tmp_path, watch=watch)
    run(tmp_path, resume=True)
    with pytest.raises(UsageError, match="resume it"):
        run(tmp_path)
    FolderLock(tmp_path).release()
    assert load_checkpoint(tmp_path)[1]["step"] == 2


def test_a_file_system_without_locks_is_used_without(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    assert run(tmp_path).finished
