"""Which files count as images, and that threads may read them."""

import io
import os
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from equicaps.errors import DamagedFileError, NotFoundError
from equicaps.images.decode import find_images, image_size, is_remote, iterate_images, open_image, read_pixels


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
    for path, reason in ((tmp_path / "pipe.png", "it is not a file but a pipe"), (tmp_path, "is a folder")):
        for read in (open_image, image_size):
            with pytest.raises(DamagedFileError, match=reason):
                read(path)


def test_only_known_formats_are_decoded_whatever_the_name_says(tmp_path):
    """PostScript, for which Pillow would start Ghostscript, is not even recognised."""
    path = tmp_path / "drawing.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 30\n%%EndComments\nshowpage\n")
    with pytest.raises(DamagedFileError, match=r"drawing\.png is not a readable image: its format is not known"):
        open_image(path)


def jpeg(scans):
    """A progressive JPEG whose last scan is repeated."""
    file = io.BytesIO()
    Image.new("L", (40, 30), 90).save(file, "JPEG", progressive=True)
    content = file.getvalue()
    last, count = content.rindex(b"\xff\xda"), content.count(b"\xff\xda")
    return content[:last] + content[last:-2] * (scans - count + 1) + content[-2:]


def webp(side):
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "WEBP", lossless=True, method=0)
    return file.getvalue()


def bmp(side):
    """Run-length encoded, but for its pixels."""
    header = struct.pack("<2sIHHI", b"BM", 1078, 0, 0, 1078)
    return header + struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 0, 0, 0, 256, 0) + bytes(1024)


@pytest.mark.parametrize(
    ("dear", "cheap", "message"),
    [
        (jpeg(101), jpeg(100), "a JPEG of more than 100 scans"),
        (webp(5500), webp(100), "more than 30 megapixels as WEBP, compressed in this way; save it as PNG or JPEG"),
        (bmp(1800), bmp(100), "more than 2 megapixels as BMP"),
        (b"P3 1800 1800 255\n", b"P3 100 100 255\n", "more than 2 megapixels as PPM"),
        (b"P6 1800 1800 200\n", b"P6 1800 1800 255\n", "more than 2 megapixels as PPM"),
        (b"P5 7100 7100 255\n", b"P5 7000 7000 255\n", "more than 50 megapixels; reduce its size first"),
        (b"P5 65536 2 255\n", b"P5 65535 2 255\n", "longer than 65,535 pixels; cut it into pieces"),
    ],
    ids=["scans", "webp", "runs", "decimal", "odd range", "pixels", "length"],
)
def test_what_would_take_long_or_much_memory_is_refused_before_it_is_decoded(dear, cheap, message):
    with pytest.raises(DamagedFileError, match=message):
        image_size(dear)
    assert min(image_size(cheap)) > 0  # control
    assert read_pixels(jpeg(100)).shape == (1, 30, 40)


def test_scans_are_counted_across_the_borders_of_blocks_and_up_to_the_end_of_the_image(monkeypatch):
    """The video that a phone appends to a photograph contains the same bytes."""
    for size in (3, 2**16):
        monkeypatch.setattr("equicaps.images.bounds._AT_ONCE", size)
        assert image_size(jpeg(100) + b"\xff\xda" * 1000) == (40, 30)
        with pytest.raises(DamagedFileError, match="more than 100 scans"):
            image_size(jpeg(101))
