import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from equicaps.data.locate import Collection, cache_folder, locate
from equicaps.errors import FetchError, MissingPackageError


def letters(source, instead=""):
    """A collection with one source, which is called with the missing files."""
    return Collection("letters", "letters", lambda files: {"somebody": lambda scratch: source(files)}, instead)


def empty_files(files):
    return ((file, b"") for file in files)


def never(files):
    pytest.fail("fetched")


def test_the_cache_follows_the_systems_habits(monkeypatch):
    assert cache_folder().name == "cache"
    monkeypatch.delenv("EQUICAPS_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/equicaps")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == Path.home() / ".cache" / "equicaps"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "equicaps"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache_folder() == Path("/local/equicaps")


def test_only_missing_files_are_fetched(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    asked = []
    folder = cache_folder() / "letters"
    folder.mkdir(parents=True)
    (folder / "a.gz").write_bytes(b"")
    found = locate(letters(lambda files: asked.extend(files) or empty_files(files)), ["a", "b"])
    assert found == [folder / "a.gz", folder / "b"]
    assert asked == ["b"]


def test_one_fetches_while_the_others_wait(monkeypatch):
    """Each in a thread of its own: a lock on a file holds between them as between processes."""
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    together, asked = Barrier(4), []

    def slowly(files):
        asked.append(files)
        for file in files:
            time.sleep(0.1)  # whoever looks now must not be content with the first file
            yield file, f"content of {file}".encode()

    def run(_):
        together.wait()
        return [path.read_text() for path in locate(letters(slowly), ["a", "deep/b"])]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(4))) == [["content of a", "content of deep/b"]] * 4
    assert asked == [["a", "deep/b"]]
    assert sorted(path.name for path in (cache_folder() / "letters").iterdir()) == [".lock", "a", "deep"]


def test_the_lock_is_free_again_after_an_error(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")

    def refuse(files):
        raise FetchError("no way")

    for _ in range(2):
        with pytest.raises(FileNotFoundError, match="no way"):
            locate(letters(refuse), ["a"])
    assert locate(letters(empty_files), ["a"]) == [cache_folder() / "letters" / "a"]


def test_the_offline_switch_forbids_fetching():
    with pytest.raises(FileNotFoundError, match="EQUICAPS_OFFLINE forbids fetching"):
        locate(letters(never), ["a"])


def test_without_pooch_what_is_there_is_found_and_what_is_missing_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    monkeypatch.setitem(sys.modules, "pooch", None)
    (tmp_path / "a").touch()
    assert locate(letters(never), ["a"], tmp_path) == [tmp_path / "a"]
    with pytest.raises(MissingPackageError, match="needs pooch: pip install"):
        locate(letters(never), ["a"])


def test_nothing_is_fetched_into_an_explicit_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    monkeypatch.setenv("EQUICAPS_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(FileNotFoundError, match=rf"letters: a not found; looked in {tmp_path}/mine/letters, "):
        locate(letters(never), ["a"], tmp_path / "mine")


def test_a_long_list_of_missing_files_is_cut_and_an_alternative_is_named(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")

    def refuse(files):
        raise FetchError("no way")

    with pytest.raises(
        FileNotFoundError,
        match=r"a, b, c, d and 2 more not found .*\(somebody: no way\).*Write them yourself\.$",
    ):
        locate(letters(refuse, "Write them yourself."), list("abcdef"))


def test_a_cache_that_cannot_be_written_is_named(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    cache_folder().write_text("a file, not a folder")
    with pytest.raises(FileNotFoundError, match=r"could not be fetched \(cannot create the folder .*Not a directory"):
        locate(letters(never), ["a"])
