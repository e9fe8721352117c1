"""Which files count as images, and that threads may read them."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from equicaps.errors import DamagedFileError, NotFoundError
from equicaps.images.decode import find_images, image_size, is_remote, iterate_images, open_image


@pytest.fixture
def folder(tmp_path):
    names = (
        "b/2.png",
        "b/1.JPG",
        "b-c.png",
        "a.png",
        "B.png",
        "notes.txt",
        ".hidden.png",
        ".hidden/x.png",
        "b/.x/y.png",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.png").symlink_to(tmp_path / "a.png")
    (tmp_path / "lost.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "again").symlink_to(tmp_path / "b")
    (tmp_path / "folder.png").mkdir()
    return tmp_path


def test_the_images_of_a_folder_are_sorted_by_their_paths(folder):
    """Without hidden files and folders; links to files count, links to folders do not."""
    found = find_images([folder])
    assert found == sorted(found)
    names = [path.relative_to(folder).as_posix() for path in found]
    assert names == ["B.png", "a.png", "b/1.JPG", "b/2.png", "b-c.png", "link.png"]


def test_no_image_is_listed_twice_however_the_paths_overlap(folder):
    one, below, text = folder / "b" / "2.png", folder / "b", folder / "notes.txt"
    assert find_images([one, text, one]) == [one, text]
    for paths in ([one, folder], [below, folder, one], [folder, below]):
        found = find_images(paths)
        assert found[0] == (find_images([paths[0]]))[0]
        assert sorted(found) == find_images([folder])
    assert find_images([folder, text])[-1] == text
    linked = folder / "again" / "2.png"  # lies in the folder, but is not among its images
    assert find_images([folder, linked])[-1] == linked


def test_images_are_listed_one_by_one(folder):
    """What lies behind the first ones is not looked at before they are asked for."""
    found = iterate_images([folder / "b", folder / "nowhere"])
    assert [next(found).name, next(found).name] == ["1.JPG", "2.png"]
    with pytest.raises(NotFoundError, match="nowhere does not exist"):
        next(found)


def test_a_folder_that_may_not_be_read_is_left_out(folder, monkeypatch):
    def scan(path, real=os.scandir):
        if Path(path).name == "b":
            raise PermissionError
        return real(path)

    monkeypatch.setattr(os, "scandir", scan)
    assert [path.name for path in find_images([folder])] == ["B.png", "a.png", "b-c.png", "link.png"]
    with pytest.raises(NotFoundError, match="holds no image"):
        find_images([folder / "b"])


@pytest.mark.parametrize(
    ("name", "remote"),
    [("s3://bucket/x.png", True), ("gs://b", True), ("a/b.png", False), ("C:/x.png", False), ("s3:/x", False)],
)
def test_addresses_are_told_from_paths(name, remote):
    assert is_remote(name) == remote


def test_the_size_of_an_image_is_read_from_a_file_or_its_content(tmp_path):
    Image.new("L", (7, 5)).save(tmp_path / "x.png")
    assert image_size(tmp_path / "x.png") == image_size((tmp_path / "x.png").read_bytes()) == (7, 5)
    with pytest.raises(DamagedFileError):
        image_size("\0.png")


def test_threads_that_read_images_leave_the_filters_of_warnings_alone(tmp_path):
    Image.new("L", (3, 3)).save(tmp_path / "x.png")
    before = list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(open_image, [tmp_path / "x.png"] * 400))) == 400
    assert warnings.filters == before


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "pipe.png", tmp_path):
        for read in (open_image, image_size):
            with pytest.raises(DamagedFileError, match="it is not a file"):
                read(path)


def test_only_known_formats_are_decoded_whatever_the_name_says(tmp_path):
    """PostScript, for which Pillow would start Ghostscript, is not even recognised."""
    path = tmp_path / "drawing.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 30\n%%EndComments\nshowpage\n")
    with pytest.raises(DamagedFileError, match=r"drawing\.png is not a readable image: its format is not known"):
        open_image(path)
