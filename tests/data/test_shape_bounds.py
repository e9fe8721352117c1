import os

import pytest

from equicaps.data import shape_bounds
from equicaps.data.shape_bounds import announced, check_cost, check_size
from equicaps.errors import DamagedFileError

PLY = b"ply\nformat %s 1.0\nelement vertex %d\nproperty float x\nelement face %d\nend_header\n"


@pytest.mark.parametrize(
    ("kind", "content", "points", "faces"),
    [
        (".off", b"OFF\n8 12 0\n", 8, 12),
        (".off", b"OFF8 12 0\n", 8, 12),  # as some files of ModelNet begin
        (".off", b"# a remark\nOFF\n# 1 2 3\n\n8 12 0\n", 8, 12),
        (".off", b"COFF 8 12", 8, 12),
        (".off", b"nothing of the kind", 0, 0),
        (".ply", PLY % (b"ascii", 8, 12), 8, 12),
        (".ply", PLY % (b"ascii", 8, 10**30), 8, 10**17),  # as many as matter
        (".ply", b"ply\nend_header\nelement face 9", 0, 0),
        (".stl", bytes(80) + (2).to_bytes(4, "little") + bytes(100), 0, 2),
        (".stl", bytes(80) + (3).to_bytes(4, "little") + bytes(100), 0, 0),
        (".obj", b"v 0 0 0\nf 1 1 1", 0, 0),
    ],
)
def test_headers_announce_points_and_faces(kind, content, points, faces):
    assert announced(kind, content, "points") == points
    found = announced(kind, content, "faces")
    assert found == faces or found > faces > 10**16


def test_a_file_of_two_gigabytes_is_not_opened(tmp_path):
    path = tmp_path / "a.stl"
    path.touch()
    os.truncate(path, 2 * 10**9)
    with pytest.raises(DamagedFileError, match=r"a.stl is refused: it has 2,000 MB, more than 256; simplify"):
        check_size(path)
    os.truncate(path, 10**6)
    check_size(path)


def test_what_is_announced_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "a.ply"
    check_cost(path, ".ply", PLY % (b"binary_little_endian", 4_500_000, 1_500_000))
    for wrong, message in (((1, 1_500_001), "1,500,001 faces"), ((4_500_001, 1), "4,500,001 points")):
        with pytest.raises(DamagedFileError, match=f"a.ply is refused: it has {message}, more than .* simplify it"):
            check_cost(path, ".ply", PLY % (b"ascii", *wrong))


def test_the_words_of_text_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(shape_bounds, "MOST_WORDS", 6)
    path = tmp_path / "a.xyz"
    check_cost(path, ".xyz", b"\n 1 2 3 \r\n\t4  5 6\n")
    for kind, content in (
        (".xyz", b"1 2 3\n4 5 6 7"),
        (".ply", PLY % (b"ascii", 1, 1)),
        (".stl", b"solid " + b"1 " * 60),
    ):
        with pytest.raises(DamagedFileError, match=r"a.xyz is refused: 0 MB of text with \d+ words, .* binary PLY"):
            check_cost(path, kind, content)
    check_cost(path, ".ply", PLY % (b"binary_little_endian", 1, 1) + b"1 " * 60)  # control: no text


def test_long_text_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(shape_bounds, "MOST_BYTES_OF_TEXT", 20)
    with pytest.raises(DamagedFileError, match="save it as binary PLY, binary STL or NPY"):
        check_cost(tmp_path / "a.off", ".off", b"OFF\n1 1 1\n" + b"#" * 20)
