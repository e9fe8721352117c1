"""One shape from a file: meshes through trimesh, points through numpy.

Nothing but the file itself is opened: materials, textures and addresses that it names are ignored.
"""

import contextlib
import io
import logging
import math
import re
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64
from numpy.typing import NDArray

from equicaps._files import check_regular
from equicaps.data.centring import centred
from equicaps.data.shape_bounds import MOST_FACES, MOST_POINTS, announced, check_cost, check_count, check_size
from equicaps.data.surfaces import Cloud, Mesh
from equicaps.errors import DamagedFileError, FileError, MissingPackageError, NotFoundError

MESH_SUFFIXES = frozenset({".off", ".obj", ".ply", ".stl"})
SHAPE_SUFFIXES = MESH_SUFFIXES | {".xyz", ".npy"}

Numbers = NDArray[Any]
Name = Path | str
"""What error messages call a file."""


def read_shape(path: str | Path, *, scale: bool = True) -> Mesh | Cloud:
    """The triangles of a mesh (OFF, OBJ, PLY, STL), or points (XYZ, NPY, and a mesh without faces).

    Polygons are divided into triangles. The axes are those of the file. XYZ is text with three numbers or more in each
    line, separated by spaces or commas, of which the first three count; NPY is an array of shape (n, 3). Meshes need
    trimesh.

    Args:
        path: the file, whose kind its suffix says.
        scale: move the shape to the origin and scale it to radius 1, see :func:`equicaps.data.centring.centred`;
            otherwise its coordinates are those of the file, in double precision.

    Raises:
        DamagedFileError: the file is broken, empty, or too large to be read safely.
        FileError: it cannot be read.
    """
    path = Path(path).expanduser()
    kind = path.suffix.lower()
    if kind not in SHAPE_SUFFIXES:
        raise DamagedFileError(
            f"{path} is not a shape that can be read: expected a file ending in {', '.join(sorted(SHAPE_SUFFIXES))}."
        )
    if not path.exists():
        raise NotFoundError(f"{path} does not exist; expected a shape.")
    check_regular(path)
    try:
        found = _array(path, path) if kind == ".npy" else _parsed(path, kind, _content(path))
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"cannot read {path}: {error.strerror or error}.") from error
    return _surface(path, found, scale=scale)


def decode_shape(content: bytes, name: str, kind: str, *, scale: bool = True) -> Mesh | Cloud:
    """The same for the content of a file, with the same bounds.

    Args:
        content: of the file.
        name: what error messages call it.
        kind: one of :data:`SHAPE_SUFFIXES`.
        scale: as for :func:`read_shape`.

    Raises:
        DamagedFileError: it is broken, empty, or too large to be read safely.
    """
    found = _array(name, io.BytesIO(content)) if kind == ".npy" else _parsed(name, kind, content)
    return _surface(name, found, scale=scale)


def _content(path: Path) -> bytes:
    check_size(path)
    return path.read_bytes()


def _parsed(path: Name, kind: str, content: bytes) -> Float64[np.ndarray, "n *corners 3"]:
    """Triangles of shape (n, 3, 3), or points of shape (n, 3)."""
    if not content.strip():
        raise DamagedFileError(f"{path} is an empty file; remove it, or save the shape again.")
    check_cost(path, kind, content)
    if kind == ".xyz":
        return _points(path, content)
    found = _mesh(path, kind, content)
    expected, faces = announced(kind, content, "faces"), len(found) if found.ndim == 3 else 0
    if faces < expected:
        raise DamagedFileError(
            f"{path} is truncated or corrupted: it announces {expected:,} faces, but {faces:,} triangles were found. "
            "Repair or remove it."
        )
    return found


def _mesh(path: Name, kind: str, content: bytes) -> Float64[np.ndarray, "n *corners 3"]:
    try:
        import trimesh
    except ImportError as error:
        raise MissingPackageError(f"Meshes such as {path} need trimesh: pip install 'equicaps[shapes]'.") from error
    try:
        with _quiet():
            # The stream has no name, so trimesh does not know where the file lies, and looks for no others there.
            scene = trimesh.load_scene(
                io.BytesIO(_without_materials(kind, content)), file_type=kind[1:], process=False, skip_materials=True
            )
        parts: list[Any] = list(scene.geometry.values())
        meshes = [(np.asarray(part.vertices), np.asarray(part.faces)) for part in parts if hasattr(part, "faces")]
        check_count(path, sum(len(faces) for _, faces in meshes), "faces", MOST_FACES)
        triangles = [_corners(vertices, faces) for vertices, faces in meshes if len(faces)]
        points = [np.asarray(part.vertices, dtype=np.float64).reshape(-1, 3) for part in parts]
        return np.concatenate(triangles or points or [np.zeros((0, 3))])
    except (DamagedFileError, MemoryError):
        raise
    except Exception as error:  # trimesh raises whatever its parsers trip over
        raise DamagedFileError(
            f"{path} is truncated, corrupted or not in the format {kind[1:].upper()}: {_brief(error)}. Repair or "
            "remove it."
        ) from error


def _without_materials(kind: str, content: bytes) -> bytes:
    """An OBJ without the names of materials: trimesh makes a mesh of each, in a time that grows with their square."""
    return re.sub(rb"(?m)^[ \t]*usemtl\b.*$", b"", content) if kind == ".obj" else content


_logging = threading.Lock()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Whatever trimesh stumbles over is in our own error: it logs no traces. Where numpy stops reading, it says so."""
    log = logging.getLogger("trimesh")
    with _logging:  # the level and the filters are those of the whole process
        before = log.level
        log.setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="string or file could not be read")
                yield
        finally:
            log.setLevel(before)


def _brief(error: Exception) -> str:
    """The message of a foreign error, in one line of bounded length and without a full stop."""
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__


def _corners(vertices: Numbers, faces: Numbers) -> Float64[np.ndarray, "faces 3 3"]:
    if faces.min() < 0 or faces.max() >= len(vertices):
        raise ValueError(f"a face names a corner that is not one of the {len(vertices):,}")
    return vertices.astype(np.float64)[faces]


def _points(path: Name, content: bytes) -> Float64[np.ndarray, "n 3"]:
    try:
        text = content.decode("utf-8-sig").replace(",", " ")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about a text of comments alone, which is refused later
            found = np.loadtxt(io.StringIO(text), ndmin=2)
        if found.size and found.shape[1] < 3:
            raise ValueError(f"there are {found.shape[1]}")
    except ValueError as error:
        raise DamagedFileError(
            f"{path} is not a list of points: expected at least three numbers in each line, separated by spaces or "
            f"commas, but {_brief(error).partition(';')[0]}. Repair or remove it."
        ) from error
    return found[:, :3] if found.size else np.zeros((0, 3))


def _array(path: Name, source: Path | io.BytesIO) -> Float64[np.ndarray, "n 3"]:
    """A file is mapped into memory at first, so that neither a huge one nor a header that promises one is read."""
    try:
        if isinstance(source, io.BytesIO):
            _check_promise(source)
            found: Any = np.load(source, allow_pickle=False)
        else:
            found = np.load(source, mmap_mode="r", allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # numpy's parser of headers raises nearly anything
        raise DamagedFileError(
            f"{path} is truncated, corrupted or not an array of numbers: {_brief(error)}. Save the points with "
            "numpy.save, with shape (n, 3)."
        ) from error
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "fiu" or found.shape[1:] != (3,):
        what = f"{found.dtype} of shape {found.shape}" if isinstance(found, np.ndarray) else "an archive of arrays"
        raise DamagedFileError(f"{path} is not a cloud of points: expected numbers of shape (n, 3), but found {what}.")
    check_count(path, len(found), "points", MOST_POINTS)
    return np.array(found, dtype=np.float64)


def _check_promise(stream: io.BytesIO) -> None:
    """Raise if the header announces more than follows: numpy would reserve memory for it before it reads."""
    old = np.lib.format.read_magic(stream) == (1, 0)
    header = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if math.prod(shape) * dtype.itemsize > len(stream.getbuffer()) - stream.tell():
        raise ValueError(f"the header announces {dtype} of shape {shape}, which is more than there is")
    stream.seek(0)


def _check_finite(path: Name, found: Numbers) -> None:
    if not len(found):
        raise DamagedFileError(f"{path} is empty or truncated: it has neither faces nor points. Repair or remove it.")
    wrong = ~np.isfinite(found).reshape(len(found), -1).all(1)
    if wrong.any():
        what = "points" if found.ndim == 2 else "faces"
        raise DamagedFileError(
            f"{path} has coordinates that are NaN or infinite, in {int(wrong.sum()):,} of {len(found):,} {what}. "
            "Repair or remove it."
        )


def _surface(path: Name, found: Numbers, *, scale: bool) -> Mesh | Cloud:
    """Refuses what is not finite or has no extent."""
    _check_finite(path, found)
    exact = torch.from_numpy(found)
    shape = centred(exact).float() if scale else exact
    if not shape.float().isfinite().all():
        raise DamagedFileError(f"{path} has coordinates that are too large for numbers of 32 bits; scale it down.")
    if shape.ndim == 2:
        if bool((shape == shape[0]).all()):
            raise DamagedFileError(f"{path} has no extent: all of its points are the same. Repair or remove it.")
        return Cloud(shape)
    mesh = Mesh(shape)
    if not mesh.area:
        raise DamagedFileError(f"{path} has no surface: the area of all faces is zero. Repair or remove it.")
    return mesh
