"""ModelNet10 (Wu et al., 2015) as grids of occupied voxels: 4,899 pieces of furniture in ten classes."""

import hashlib
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from equicaps.data.fetch import Source
from equicaps.data.locate import Collection, locate
from equicaps.data.shapes import Shapes, Surfaces
from equicaps.data.surfaces import VoxelSurface
from equicaps.errors import DamagedFileError, FetchError

FILE = "modelnet10_vox30.npz"
COUNTS = {"train": 3991, "test": 908}
SIDE = 30
HALF = 12
"""Half the longest side of every object, in voxels."""
SHA256 = "86c7de7573a4e9e0b48da28afd6ac2dd2a915402d1817c20f2480fad3c7efb01"
"""Of the grids and labels for training, those for test, and the names of the classes, one after the other, as bytes."""

Fields = dict[str, NDArray[Any]]


def load_modelnet10(split: Literal["train", "test"], root: str | Path | None = None) -> Shapes:
    """The 3,991 training or 908 test shapes of the official division, verified, as the surfaces of their voxels.

    The coordinates are those of the file: its third axis points up. The middle of the grid is the origin, and objects
    lie in [-1, 1], their longest side from -1 to 1.

    Args:
        split: of the official division.
        root: a folder with ``modelnet10_vox30.npz``, or with a folder ``modelnet10`` that holds it; by default it is
            searched for in ``EQUICAPS_DATA`` and the user's cache.
    """
    [path] = locate(COLLECTION, (FILE,), root)
    fields = _read(path)
    grids = np.unpackbits(fields[f"X_{split}_packed"], axis=1, count=SIDE**3).reshape(-1, SIDE, SIDE, SIDE).astype(bool)
    empty = len(grids) - int(grids.any((1, 2, 3)).sum())
    return Shapes(
        f"ModelNet10 ({split}, voxels)",
        Surfaces(VoxelSurface(grid, 1 / HALF) for grid in grids),
        torch.from_numpy(fields[f"y_{split}"].astype(np.int64)),
        tuple(map(str, fields["classes"])),
        f"surfaces of {2 * HALF} voxels along the longest side; {empty} grids are empty, and their points are zeros",
    )


def _read(path: Path) -> Fields:
    """The verified grids, labels and class names of a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            fields = {name: arrays[name] for name in _NAMES}
    except (ValueError, TypeError, KeyError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFileError(
            f"{path} is truncated, corrupted or not the file of ModelNet10 ({error}). {_REMEDY}"
        ) from error
    found = digest(fields)
    if found != SHA256:
        described = ", ".join(f"{name} {array.shape} {array.dtype}" for name, array in fields.items())
        raise DamagedFileError(
            f"{path} is corrupted or not the file of ModelNet10: it holds {described} with sha256 {found}, not "
            f"{SHA256}. {_REMEDY}"
        )
    return fields


_NAMES = ("X_train_packed", "y_train", "X_test_packed", "y_test", "classes")
_REMEDY = "Replace it: docs/data.md says where it comes from."


def digest(fields: Fields) -> str:
    """The sha256 of grids, labels and class names."""
    content = hashlib.sha256()
    for name in _NAMES[:-1]:
        content.update(np.ascontiguousarray(fields[name]).data)
    content.update("\n".join(map(str, fields["classes"])).encode())
    return content.hexdigest()


def _nowhere(_: Sequence[str]) -> Mapping[str, Source]:
    raise FetchError("no server offers it in this form")


COLLECTION = Collection(
    "ModelNet10",
    "modelnet10",
    _nowhere,
    "The grids are those of data/modelnet10.npz in the GitHub repository amitregmi/VoxNet-Google-Colab; docs/data.md "
    "says how to pack them. Neither that repository nor this package grants a licence for them: Princeton offers "
    "ModelNet for academic research.",
)
