"""What division does to images is in test_folder.py; here is what the kind of files changes."""

import pytest

from equicaps.data.division import Kind, check_request, divide_folder, remark_on_ignored
from equicaps.errors import UsageError

SONGS = Kind("song", frozenset({".mid", ".ogg"}))


@pytest.fixture
def folder(tmp_path):
    for name in ("blues", "jazz"):
        (tmp_path / name).mkdir()
        for number in range(10):
            (tmp_path / name / f"{number}.mid").write_text(f"{name} {number}")
    (tmp_path / "jazz" / "notes.txt").write_text("mine")
    return tmp_path


def test_only_files_of_the_kind_are_divided(folder):
    found = divide_folder(folder, SONGS, 0.2, 0)
    assert list(found.parts) == ["train", "test"]
    for name in ("blues", "jazz"):
        files = [file.name for part in ("train", "test") for file in found.parts[part][name]]
        assert sorted(files) == [f"{number}.mid" for number in range(10)]
    assert remark_on_ignored(folder, SONGS) == ["1 files ignored that are not songs"]
    assert remark_on_ignored(folder / "blues", SONGS) == []


def test_messages_use_the_word_for_the_kind(folder):
    with pytest.raises(UsageError, match=r"jazz: at least two classes are needed, each a folder of songs; found none"):
        divide_folder(folder / "jazz", SONGS, 0.2, 0)
    (folder / "rock").mkdir()
    with pytest.raises(UsageError, match=r"rock holds no song \(.mid, .ogg\)"):
        divide_folder(folder, SONGS, 0.2, 0)
    (folder / "rock" / "a.ogg").write_text("one")
    with pytest.raises(UsageError, match="the class 'rock' has one song; at least two"):
        divide_folder(folder, SONGS, 0.2, 0)


def test_a_fraction_must_be_one(folder):
    assert check_request("load", folder, 0.5) == folder.name
    with pytest.raises(UsageError, match="load: test_fraction must lie between 0 and 1, but is 0"):
        check_request("load", folder, 0.0)


def test_copies_are_found_by_their_bytes(folder):
    (folder / "blues" / "again.mid").write_text("blues 3")
    (folder / "blues" / "other.mid").write_text("blues X")  # of the same size
    found = divide_folder(folder, SONGS, 0.2, 0)
    assert sum(len(found.parts[part]["blues"]) for part in ("train", "test")) == 11
    assert found.remarks == ["1 copies left out"]
