import sys
from pathlib import Path

import pytest

from equicaps.data.locate import Collection, cache_folder, locate
from equicaps.errors import FetchError


def refuse(folder, files):
    raise FetchError("no way")


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


def test_only_missing_files_are_fetched(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    asked = []

    def fetch(folder, files):
        asked.extend(files)
        for file in files:
            (folder / file).write_bytes(b"")

    folder = cache_folder() / "letters"
    folder.mkdir(parents=True)
    (folder / "a.gz").write_bytes(b"")
    assert locate(Collection("letters", "letters", fetch), ["a", "b"]) == [folder / "a.gz", folder / "b"]
    assert asked == ["b"]


def test_the_offline_switch_forbids_fetching():
    with pytest.raises(FileNotFoundError, match="EQUICAPS_OFFLINE forbids fetching"):
        locate(Collection("letters", "letters", lambda *_: pytest.fail("fetched")), ["a"])


def test_a_long_list_of_missing_files_is_cut_and_an_alternative_is_named(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    collection = Collection("letters", "letters", refuse, "Write them yourself.")
    with pytest.raises(
        FileNotFoundError, match=r"a, b, c, d and 2 more not found .*\(no way\).*Write them yourself\.$"
    ):
        locate(collection, list("abcdef"))


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    (tmp_path / "cache").write_text("a file, not a folder")

    def fetch(folder, files):
        folder.mkdir(parents=True)

    with pytest.raises(FileNotFoundError, match=r"could not be fetched \(.*Not a directory"):
        locate(Collection("letters", "letters", fetch), ["a"])
