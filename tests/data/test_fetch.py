import hashlib
import io
import os
import sys
import tarfile
import zipfile

import pytest

from equicaps.data.fetch import download, fetch, from_zip, read_member
from equicaps.errors import DamagedFileError, FetchError, MissingPackageError

CONTENT = os.urandom(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def from_url(server):
    """A source that downloads one file and checks it by its md5."""

    def make(path):
        def source(scratch):
            file = download(f"{server.url}{path}", scratch, MD5)
            yield file.name, file.read_bytes()

        return source

    return make


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_arrives_whole_and_nothing_else_stays(server, from_url, tmp_path, capfd):
    server.files["file.bin"] = CONTENT
    fetch(tmp_path, {"mirror": from_url("file.bin")})
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert names(tmp_path) == ["file.bin"]
    assert capfd.readouterr() == ("", "")  # away from a terminal


def test_a_broken_connection_leaves_nothing_and_the_next_attempt_starts_again(server, from_url, tmp_path):
    server.files["file.bin"], server.cut = CONTENT, 100_000
    with pytest.raises(FetchError, match=r"mirror: .*100000 bytes read, 200000 more expected"):
        fetch(tmp_path, {"mirror": from_url("file.bin")})
    assert names(tmp_path) == []
    server.cut = None
    fetch(tmp_path, {"mirror": from_url("file.bin")})
    assert (tmp_path / "file.bin").read_bytes() == CONTENT


def test_a_damaged_file_never_gets_its_name_and_the_next_source_is_tried(server, from_url, tmp_path):
    server.files |= {"bad/file.bin": CONTENT[:-1] + b"?", "good/file.bin": CONTENT}
    with pytest.raises(FetchError, match=rf"bad: .*file.bin.* expected md5:{MD5} but got"):
        fetch(tmp_path, {"bad": from_url("bad/file.bin")})
    assert names(tmp_path) == []
    fetch(tmp_path, {name: from_url(f"{name}/file.bin") for name in ("missing", "bad", "good", "never asked")})
    assert (tmp_path / "file.bin").read_bytes() == CONTENT
    assert server.requests == [f"{name}/file.bin" for name in ("bad", "missing", "bad", "good")]


def test_the_error_says_what_every_source_said(from_url, tmp_path):
    with pytest.raises(FetchError, match=r"first: 404 Client Error.*/one; second: 404 Client Error.*/two$"):
        fetch(tmp_path, {"first": from_url("one"), "second": from_url("two")})


def test_a_server_that_cannot_be_reached_is_reported_in_a_few_words(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with pytest.raises(FetchError, match=r"^nobody: \[Errno \d+\] Connection refused$"):
        fetch(tmp_path, {"nobody": lambda scratch: iter([download("http://127.0.0.1:9/file.bin", scratch)])})


def test_what_a_killed_process_left_is_removed(server, from_url, tmp_path):
    server.files["file.bin"] = CONTENT
    (tmp_path / ".fetching-old").mkdir()
    (tmp_path / ".fetching-old" / "file.bin").write_bytes(CONTENT[:1000])
    fetch(tmp_path, {"mirror": from_url("file.bin")})
    assert names(tmp_path) == ["file.bin"]


def test_a_disk_that_is_full_leaves_no_half_file(server, from_url, tmp_path, monkeypatch):
    server.files["file.bin"] = CONTENT
    monkeypatch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FetchError, match="the disk is full"):
        fetch(tmp_path, {"mirror": from_url("file.bin")})
    assert names(tmp_path) == []


@pytest.mark.parametrize("package", ["pooch", "rich"])
def test_without_a_package_the_error_says_what_to_install(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"Fetching data needs {package}: pip install 'equicaps\[data\]'"):
        fetch(tmp_path, {})


def test_a_terminal_shows_how_far_the_download_is(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("rich.console.Console.is_terminal", True)
    server.files["file.bin"] = CONTENT
    download(f"{server.url}file.bin", tmp_path)
    shown = capsys.readouterr().err
    assert "file.bin" in shown
    assert "300.0/300.0 kB" in shown


@pytest.fixture(params=["zip", "tar"])
def archive(request, tmp_path):
    path, members = tmp_path / "archive", {"a/b/digits.bin": CONTENT, "a/more-digits.bin": b"others"}
    if request.param == "zip":
        with zipfile.ZipFile(path, "w") as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz") as tarred:
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tarred.addfile(info, io.BytesIO(content))
    return path


def test_members_of_archives_are_found_in_any_folder(archive):
    assert read_member(archive, "digits.bin") == ("digits.bin", CONTENT)
    assert read_member(archive, "nothing", "more-digits.bin") == ("more-digits.bin", b"others")
    with pytest.raises(FetchError, match="archive holds no b or c"):
        read_member(archive, "b", "c")


@pytest.mark.parametrize("length", [0, 100_000])
def test_a_truncated_archive_is_named(archive, length):
    archive.write_bytes(archive.read_bytes()[:length])
    with pytest.raises(DamagedFileError, match="archive is truncated or corrupted"):
        read_member(archive, "digits.bin")


@pytest.mark.parametrize("archive", ["zip"], indirect=True)
def test_a_flipped_bit_in_a_zip_is_noticed(archive):
    """By its own checksum; a tar archive has none."""
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    with pytest.raises(DamagedFileError, match=r"corrupted: Bad CRC-32 for file 'a/b/digits.bin'"):
        read_member(archive, "digits.bin")


def test_only_the_wanted_files_of_a_zip_are_delivered(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for name in ("deep/one.txt", "two.txt", "unwanted.txt", "../../escaped.txt"):
            zipped.writestr(name, name)
    server.files["files.zip"] = packed.getvalue()
    delivered = from_zip(f"{server.url}files.zip", None, ["one.txt", "below/two.txt"], tmp_path)
    assert dict(delivered) == {"one.txt": b"deep/one.txt", "below/two.txt": b"two.txt"}
    assert names(tmp_path) == ["files.zip"]
