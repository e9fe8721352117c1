import hashlib
import os

import pytest

from equicaps.data.fetch import download, write_atomically
from equicaps.errors import DamagedFileError, FetchError

CONTENT = os.urandom(300_000)


def verify(path):
    if path.read_bytes() != CONTENT:
        raise DamagedFileError(f"{path} is damaged")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "new" / "folder" / "file.bin"


def leftovers(target):
    return sorted(path.name for path in target.parent.iterdir() if path != target and path.name != ".lock")


def test_a_file_arrives_whole(server, target):
    server.files["file.bin"] = CONTENT
    download([f"{server.url}file.bin"], target, verify)
    assert target.read_bytes() == CONTENT
    assert leftovers(target) == []


def test_a_broken_connection_leaves_no_file_and_is_resumed_where_it_ended(server, target):
    server.files["file.bin"], server.cut = CONTENT, 100_000
    with pytest.raises(FetchError, match=r"ended after 100,000 of 300,000 bytes|IncompleteRead"):
        download([f"{server.url}file.bin"], target, verify)
    assert not target.exists()
    assert leftovers(target) == ["file.bin.part"]
    server.cut = None
    download([f"{server.url}file.bin"], target, verify)
    assert target.read_bytes() == CONTENT
    assert leftovers(target) == []
    assert server.requests == [("file.bin", None), ("file.bin", "bytes=100000-")]


def test_a_server_that_cannot_resume_sends_everything(server, target):
    target.parent.mkdir(parents=True)
    target.with_name("file.bin.part").write_bytes(CONTENT[:1000])
    server.files["file.bin"], server.ranges = CONTENT, False
    download([f"{server.url}file.bin"], target, verify)
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == 1


@pytest.mark.parametrize("left", [b"something else", CONTENT + b"and more", CONTENT], ids=["other", "longer", "whole"])
def test_what_an_earlier_attempt_left_is_verified_too(server, target, left):
    target.parent.mkdir(parents=True)
    target.with_name("file.bin.part").write_bytes(left)
    server.files["file.bin"] = CONTENT
    download([f"{server.url}file.bin"], target, verify)
    assert target.read_bytes() == CONTENT
    assert leftovers(target) == []


def test_a_damaged_file_never_gets_its_name_and_the_next_mirror_is_tried(server, target):
    server.files |= {"bad/file.bin": CONTENT[:-1] + b"?", "good/file.bin": CONTENT}
    with pytest.raises(FetchError, match=r"bad/file.bin: .*file.bin.part is damaged"):
        download([f"{server.url}bad/file.bin"], target, verify)
    assert not target.exists()
    assert leftovers(target) == []
    download([f"{server.url}{name}/file.bin" for name in ("missing", "bad", "good")], target, verify)
    assert target.read_bytes() == CONTENT


def test_every_mirrors_reason_is_told(server, target):
    with pytest.raises(FetchError, match=r"one: HTTP Error 404.*two: HTTP Error 404"):
        download([f"{server.url}one", f"{server.url}two"], target, verify)


def test_a_file_that_another_process_fetched_is_not_fetched_again(server, target):
    target.parent.mkdir(parents=True)
    target.write_bytes(CONTENT)
    download([f"{server.url}file.bin"], target, verify)
    assert server.requests == []


def test_writing_fails_as_a_whole(tmp_path, monkeypatch):
    target = tmp_path / "file"
    write_atomically(target, b"old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("power cut")))
    with pytest.raises(OSError, match="power cut"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_content_is_random_enough_to_tell():
    """Guard: a repeated or shifted part would be noticed."""
    assert len({hashlib.md5(CONTENT[i : i + 1000]).digest() for i in range(0, 300_000, 1000)}) == 300
