import logging
import os
import sys
import time

import numpy as np
import pytest
import torch
import trimesh

from equicaps.data import Cloud, Mesh, decode_shape, read_shape, shape_files
from equicaps.errors import DamagedFileError, EquicapsError, FileError, MissingPackageError, NotFoundError

VERTICES = np.array([[0, 0, 0], [2, 0, 0], [0, 3, 0], [0, 0, 6.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
MESH = trimesh.Trimesh(VERTICES, FACES, process=False)


def exported(kind):
    """A tetrahedron in each format, as bytes."""
    if kind == "ascii.ply":
        return trimesh.exchange.ply.export_ply(MESH, encoding="ascii")
    if kind == "ascii.stl":
        return trimesh.exchange.stl.export_stl_ascii(MESH).encode()
    content = MESH.export(file_type=kind)
    return content if isinstance(content, bytes) else content.encode()


KINDS = ("off", "obj", "ply", "stl", "ascii.ply", "ascii.stl")


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_triangles(tmp_path, kind):
    found = read_shape(write(tmp_path / f"a.{kind}", exported(kind)), scale=False)
    assert isinstance(found, Mesh)
    torch.testing.assert_close(found.triangles, torch.from_numpy(VERTICES[FACES]), atol=1e-5, rtol=1e-5)
    scaled = read_shape(tmp_path / f"a.{kind}")
    assert torch.linalg.vector_norm(scaled.triangles, dim=-1).max() == pytest.approx(1)
    assert scaled.sample(20_000, torch.Generator().manual_seed(0)).mean(0).abs().max() < 0.02


def test_suffixes_in_capitals_and_faces_with_more_corners_are_read(tmp_path):
    square = "OFF\n4 1 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n4 0 1 2 3\n"
    found = read_shape(write(tmp_path / "A.OFF", square), scale=False)
    assert (len(found.triangles), found.area) == (2, pytest.approx(1))
    pentagon = "v 0 0 0\nv 2 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\nf 1 2 3 4 5\n"
    assert read_shape(write(tmp_path / "a.obj", pentagon), scale=False).area == pytest.approx(3)
    parts = "o one\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\no two\nv 0 0 5\nv 1 0 5\nv 0 1 5\nf 4 5 6\n"
    assert read_shape(write(tmp_path / "b.obj", parts), scale=False).area == pytest.approx(1)


POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0.5]])
TEXTS = {
    "spaces": "0 0 0\n1 0 0\n0 2 .5\n",
    "commas": "0,0,0\n1, 0, 0\n0 ,2,5e-1",
    "colours": "# x y z r g b\n0 0 0 9 9 9\n\n1 0 0 9 9 9\n0 2 .5 9 9 9\n",
    "mark": "\ufeff0\t0\t0\r\n1\t0\t0\r\n0\t2\t.5\r\n",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_lists_of_points_are_read(tmp_path, text):
    found = read_shape(write(tmp_path / "a.xyz", text), scale=False)
    assert isinstance(found, Cloud)
    torch.testing.assert_close(found.points, torch.from_numpy(POINTS))
    assert torch.linalg.vector_norm(read_shape(tmp_path / "a.xyz").points, dim=-1).max() == pytest.approx(1)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, ">f8", np.int16, np.uint8])
def test_arrays_of_points_are_read(tmp_path, kind):
    np.save(tmp_path / "a.npy", (2 * POINTS).astype(kind))
    found = read_shape(tmp_path / "a.npy", scale=False)
    torch.testing.assert_close(found.points, torch.from_numpy(2 * POINTS))


@pytest.mark.parametrize("name", ["a.ply", "a.xyz", "a.npy"])
def test_the_content_of_a_file_is_read_like_the_file(tmp_path, name):
    """Of an array also one that is stored by columns."""
    if name == "a.npy":
        np.save(tmp_path / name, np.asfortranarray(POINTS))
    else:
        write(tmp_path / name, exported("ply") if name == "a.ply" else TEXTS["commas"])
    for scale in (True, False):
        found = decode_shape((tmp_path / name).read_bytes(), "it", name[1:], scale=scale)
        assert found.tobytes() == read_shape(tmp_path / name, scale=scale).tobytes()


def test_a_mesh_without_faces_is_a_cloud(tmp_path):
    content = trimesh.PointCloud(POINTS).export(file_type="ply")
    assert torch.allclose(
        read_shape(write(tmp_path / "a.ply", content), scale=False).points[2],
        torch.tensor([0, 2, 0.5], dtype=torch.float64),
    )


def test_shapes_far_from_the_origin_lose_nothing(tmp_path):
    """Coordinates of a map: 32 bits would round them to half a metre."""
    points = 0.37 * POINTS
    np.save(tmp_path / "near.npy", points)
    np.save(tmp_path / "far.npy", points + np.array([4_500_000.0, -600_000.0, 120.0]))
    near, far = (read_shape(tmp_path / f"{name}.npy").points for name in ("near", "far"))
    torch.testing.assert_close(near, far)
    exact = read_shape(tmp_path / "far.npy", scale=False).points
    torch.testing.assert_close(exact - exact[0], torch.from_numpy(points - points[0]), atol=1e-6, rtol=0)
    rounded = exact.float() - exact.float()[0]
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(rounded, torch.from_numpy(points - points[0]).float(), atol=0.1, rtol=0)


OFF = "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
BROKEN = {
    "nothing.off": ("", "is an empty file"),
    "blank.xyz": ("\n \n", "is an empty file"),
    "comments.xyz": ("# nothing\n", "is empty or truncated: it has neither faces nor points"),
    "text.off": ("not a mesh", "not in the format OFF"),
    "text.ply": ("not a mesh", "not in the format PLY"),
    "text.stl": ("not a mesh", "empty or truncated"),
    "text.obj": ("not a mesh", "empty or truncated|not in the format OBJ"),
    "no vertices.off": ("OFF\n0 0 0\n", "not in the format OFF|empty or truncated"),
    "few vertices.off": ("OFF\n3 1 0\n0 0 0\n1 0 0\n", "not in the format OFF"),
    "few faces.off": (OFF.replace("3 1 0", "3 2 0"), "announces 2 faces, but 1 triangles were found"),
    "wrong corner.off": (OFF.replace("3 0 1 2", "3 0 1 7"), "not in the format OFF"),
    "wrong corner.obj": ("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n", "not in the format OBJ"),
    "word.off": (OFF.replace("1 0 0", "1 x 0"), "not in the format OFF"),
    "word.stl": (exported("ascii.stl").replace(b"vertex 2", b"vertex x", 1), "not in the format STL"),
    "nan.off": (OFF.replace("1 0 0", "nan 0 0"), "NaN or infinite, in 1 of 1 faces"),
    "inf.off": (OFF.replace("1 0 0", "-inf 0 0"), "NaN or infinite, in 1 of 1 faces"),
    "nan.xyz": ("0 0 0\n1 nan 0\n", "NaN or infinite, in 1 of 2 points"),
    "flat.off": (OFF.replace("0 1 0", "2 0 0"), "has no surface: the area of all faces is zero"),
    "point.xyz": ("1 2 3\n1 2 3\n", "has no extent: all of its points are the same"),
    "two.xyz": ("1 2\n3 4\n", "expected at least three numbers in each line, .* but there are 2"),
    "ragged.xyz": ("1 2 3\n1 2\n", "is not a list of points"),
    "words.xyz": ("x y z\n1 2 3\n", "is not a list of points"),
    "binary.xyz": (b"\xff\xfe\x00\x01", "is not a list of points"),
    "truncated.stl": (exported("stl")[:-20], "empty or truncated|not in the format STL"),
    "truncated.ply": (exported("ply")[:-20], "not in the format PLY|announces 4 faces"),
    "truncated ascii.ply": (exported("ascii.ply")[:-12], "not in the format PLY|announces 4 faces"),
    "no end.ply": ("ply\nformat ascii 1.0\nelement vertex 3\n", "not in the format PLY"),
    "promises.ply": (exported("ply").replace(b"element vertex 4", b"element vertex 4000000"), "not in the format PLY"),
    "nothing.npy": (b"", "not an array of numbers"),
    "text.npy": ("1 2 3", "not an array of numbers"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "message"), [(name, *case) for name, case in BROKEN.items()], ids=BROKEN)
def test_a_broken_shape_is_named(tmp_path, name, content, message, caplog, capfd):
    """And nothing but our own error is seen: neither a foreign one nor a logged trace."""
    with pytest.raises(DamagedFileError, match=f"{name} .*({message})"):
        read_shape(write(tmp_path / name, content))
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


ARRAYS = {
    "pairs": (np.zeros((5, 2)), r"numbers of shape \(n, 3\), but found float64 of shape \(5, 2\)"),
    "vector": (np.zeros(3), r"found float64 of shape \(3,\)"),
    "grid": (np.zeros((2, 3, 3)), r"found float64 of shape \(2, 3, 3\)"),
    "complex": (np.zeros((2, 3), complex), "found complex128"),
    "words": (np.full((2, 3), "a"), "found <U1"),
    "none": (np.zeros((0, 3)), "neither faces nor points|not an array"),
    "nan": (np.full((2, 3), np.nan), "NaN or infinite, in 2 of 2 points"),
}


@pytest.mark.parametrize(("array", "message"), ARRAYS.values(), ids=ARRAYS)
def test_other_arrays_are_refused(tmp_path, array, message):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DamagedFileError, match=rf"a.npy (is|has) .*({message})"):
        read_shape(tmp_path / "a.npy")


def test_numbers_beyond_32_bits_are_scaled_or_refused(tmp_path):
    np.save(tmp_path / "a.npy", 1e250 * POINTS)
    np.save(tmp_path / "b.npy", POINTS)
    torch.testing.assert_close(*(read_shape(tmp_path / name).points for name in ("a.npy", "b.npy")))
    with pytest.raises(DamagedFileError, match=r"a.npy has coordinates that are too large .* scale it down"):
        read_shape(tmp_path / "a.npy", scale=False)
    np.save(tmp_path / "a.npy", np.full((3, 3), 1.7e308) * np.array([[1], [1], [-1]]))
    with pytest.raises(DamagedFileError, match=r"a.npy has coordinates that are too large"):
        read_shape(tmp_path / "a.npy")


class Mine:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def test_pickles_and_archives_are_not_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[Mine(str(tmp_path / "mine"))] * 3]), allow_pickle=True)
    with pytest.raises(DamagedFileError, match=r"a.npy is .* not an array of numbers"):
        read_shape(tmp_path / "a.npy")
    with pytest.raises(DamagedFileError, match=r"it is .* not an array of numbers"):
        decode_shape((tmp_path / "a.npy").read_bytes(), "it", ".npy")
    assert not (tmp_path / "mine").exists()
    with (tmp_path / "b.npy").open("wb") as file:
        np.savez(file, a=POINTS)
    with pytest.raises(DamagedFileError, match=r"b.npy is not a cloud of points: .* found an archive"):
        read_shape(tmp_path / "b.npy")


def test_a_header_that_promises_too_much_reserves_no_memory(tmp_path):
    with (tmp_path / "a.npy").open("wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(DamagedFileError, match=r"a.npy is truncated"):
        read_shape(tmp_path / "a.npy")
    with pytest.raises(DamagedFileError, match=r"it is truncated, .* which is more than there is"):
        decode_shape((tmp_path / "a.npy").read_bytes(), "it", ".npy")
    os.truncate(tmp_path / "a.npy", 128 + 24 * 4_500_001)
    with (tmp_path / "a.npy").open("r+b") as file:
        np.lib.format.write_array_header_1_0(file, {**header, "shape": (4_500_001, 3)})
    with pytest.raises(DamagedFileError, match=r"it has 4,500,001 points, more than 4,500,000"):
        read_shape(tmp_path / "a.npy")


def test_too_many_faces_are_refused_also_where_no_header_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(shape_files, "MOST_FACES", 3)
    with pytest.raises(DamagedFileError, match="it has 4 faces, more than 3; simplify"):
        read_shape(write(tmp_path / "a.obj", exported("obj")))


def test_a_quarter_of_a_million_faces_take_little_time(tmp_path):
    """A million take 1.3 s as binary PLY; this keeps the tests fast."""
    vertices = np.random.default_rng(0).random((1000, 3))
    faces = np.random.default_rng(1).integers(0, 1000, (250_000, 3))
    content = trimesh.Trimesh(vertices, faces, process=False).export(file_type="ply")
    found = read_shape(write(tmp_path / "a.ply", content))
    assert len(found.triangles) == 250_000
    assert found.sample(2048, torch.Generator().manual_seed(0)).abs().max() <= 1


def test_a_material_for_every_face_takes_little_time(tmp_path):
    """trimesh makes a mesh of each: 8,000 of them took 8 CPU-seconds, four times as long as half as many."""
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"
    content = corners + "".join(f"usemtl m{number}\nf 1 2 3\n" for number in range(8000))
    started = time.process_time()
    found = read_shape(write(tmp_path / "a.obj", content.encode()))
    assert len(found.triangles) == 8000
    assert time.process_time() - started < 4


@pytest.mark.parametrize("suffix", sorted(shape_files.SHAPE_SUFFIXES))
def test_pipes_folders_and_missing_files_are_refused(tmp_path, suffix):
    pipe, folder = tmp_path / f"pipe{suffix}", tmp_path / f"folder{suffix}"
    os.mkfifo(pipe)
    folder.mkdir()
    for path, reason in ((pipe, "it is not a file but a pipe"), (folder, "is a folder; name the files in it")):
        with pytest.raises(DamagedFileError, match=reason):
            read_shape(path)
    with pytest.raises(NotFoundError, match=f"nowhere{suffix} does not exist"):
        read_shape(tmp_path / f"nowhere{suffix}")


def test_other_suffixes_and_forbidden_files_are_refused(tmp_path, monkeypatch):
    with pytest.raises(DamagedFileError, match=r"a.glb is not a shape .* ending in .npy, .obj, .off, .ply, .stl, .xyz"):
        read_shape(write(tmp_path / "a.glb", b"glTF"))

    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    write(tmp_path / "a.off", OFF)
    monkeypatch.setattr("pathlib.Path.read_bytes", forbidden)
    with pytest.raises(FileError, match=r"cannot read .*a.off: Permission denied"):
        read_shape(tmp_path / "a.off")


OPENED = []
WATCHING = [False]
sys.addaudithook(lambda event, given: OPENED.append(str(given[0])) if WATCHING[0] and event == "open" else None)


@pytest.mark.parametrize("name", ["a.obj", "a.ply"])
def test_files_that_a_shape_names_are_not_opened(tmp_path, name):
    """Neither materials nor textures, nor addresses."""
    write(tmp_path / "a.mtl", "newmtl m\nmap_Kd texture.png\n")
    write(tmp_path / "texture.png", b"no image")
    contents = {
        "a.obj": "mtllib a.mtl\nmtllib http://127.0.0.1:9/a.mtl\nusemtl m\n"
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nf 1/1 2/1 3/1\n",
        "a.ply": exported("ascii.ply").replace(b"element vertex", b"comment TextureFile texture.png\nelement vertex"),
    }
    write(tmp_path / name, contents[name])
    read_shape(tmp_path / name)  # modules are imported by now
    OPENED.clear()
    WATCHING[0] = True
    try:
        read_shape(tmp_path / name)
    finally:
        WATCHING[0] = False
    assert [str(tmp_path / name)] == OPENED


def test_that_watch_sees_what_trimesh_opens_by_itself(tmp_path):
    """Control: given the path, trimesh does look for materials."""
    write(tmp_path / "a.mtl", "newmtl m\n")
    write(tmp_path / "a.obj", "mtllib a.mtl\nusemtl m\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    OPENED.clear()
    WATCHING[0] = True
    try:
        trimesh.load_scene(tmp_path / "a.obj")
    finally:
        WATCHING[0] = False
    assert str(tmp_path / "a.mtl") in OPENED


def test_the_log_of_trimesh_is_as_before(tmp_path):
    before = logging.getLogger("trimesh").level
    for content in (OFF, "OFF"):
        with_errors = write(tmp_path / "a.off", content)
        try:
            read_shape(with_errors)
        except EquicapsError:
            assert content == "OFF"
        assert logging.getLogger("trimesh").level == before


def test_without_trimesh_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPackageError, match=r"a.off need trimesh: pip install 'equicaps\[shapes\]'"):
        read_shape(write(tmp_path / "a.off", OFF))
    assert len(read_shape(write(tmp_path / "a.xyz", TEXTS["spaces"])).points) == 3  # points do not need it
