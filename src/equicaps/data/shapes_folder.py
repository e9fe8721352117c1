"""A user's own shapes, in one folder for each class."""

from pathlib import Path
from typing import NamedTuple

import torch

from equicaps.data.damaged import of_each
from equicaps.data.division import TEST_FRACTION, Kind, check_request, divide_folder, remark_on_ignored
from equicaps.data.reduced import Watch
from equicaps.data.shape_files import SHAPE_SUFFIXES, read_shape
from equicaps.data.shapes import Shapes, Surfaces
from equicaps.data.surfaces import Cloud, Mesh
from equicaps.errors import NotFoundError

DENSE = 20_000
"""A shape with more faces or points is kept as so many of its points, so that no file takes more than 1 MB."""
KIND = Kind("shape", SHAPE_SUFFIXES)


class ShapeSplits(NamedTuple):
    """A training and a test set of shapes with the same classes."""

    train: Shapes
    test: Shapes


def load_shapes_folder(
    path: str | Path,
    *,
    test_fraction: float = TEST_FRACTION,
    seed: int = 0,
    scale: bool = True,
    watch: Watch | None = None,
) -> ShapeSplits:
    """Shapes in class folders: ``DATA/train/chair/*.off`` and ``DATA/test/chair/*.off``, or ``DATA/chair/*.off``.

    OFF, OBJ, PLY, STL, XYZ and NPY files are read, see :func:`equicaps.data.read_shape`. Folders are divided as those
    of images are, see :func:`equicaps.data.load_folder`: classes are sorted; without a folder ``test``, each class is
    divided by a hash of the seed and the file's name; hidden files are ignored, and copies left out. All shapes are
    kept in memory, and those with more than :data:`DENSE` faces or points as so many points (seeded); ``note`` of the
    result says how many.

    Args:
        path: the folder DATA.
        test_fraction: approximate fraction of each class for the test set; both sets get at least one shape.
        seed: determines the division.
        scale: move each shape to the origin and scale it to radius 1, see :func:`equicaps.data.read_shape`.
        watch: is called with how many shapes have been read and how many there are.

    Raises:
        DamagedFileError: a shape cannot be read, or is too large to be read safely; the message names it.
        UsageError: something is wrong with the folders; the message says what.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise NotFoundError(
            f"{folder} is not a folder; expected a folder that contains a folder of shapes for each class."
        )
    name = check_request("load_shapes_folder", folder, test_fraction)
    parts, how, remarks, _ = divide_folder(folder, KIND, test_fraction, seed)
    classes = tuple(parts["train"])
    files = [file for named in parts.values() for entry in classes for file in named[entry]]

    def read(numbered: tuple[int, Path]) -> tuple[Mesh | Cloud, bool]:
        number, file = numbered
        shape = read_shape(file, scale=scale)
        if watch:
            watch(number, len(files))
        return _thinned(shape)

    found = of_each(read, enumerate(files, 1), "shapes")
    thinned = sum(dense for _, dense in found)
    note = f"{len(files)} shapes in all, {'centred and scaled to radius 1' if scale else 'unchanged'}"
    remarks = [f"{thinned} kept as {DENSE:,} points each", *remarks] if thinned else remarks
    note = "; ".join((note, *remarks, *remark_on_ignored(folder, KIND)))
    surfaces, sets = iter(surface for surface, _ in found), []
    for part, named in parts.items():
        labels = torch.tensor([label for label, entry in enumerate(classes) for _ in named[entry]])
        own = Surfaces(next(surfaces) for _ in labels)
        sets.append(Shapes(f"{name} ({part}{how})", own, labels, classes, note))
    return ShapeSplits(*sets)


def _thinned(shape: Mesh | Cloud) -> tuple[Mesh | Cloud, bool]:
    """The shape, or points of it if it is dense; and whether it is."""
    size = len(shape.triangles) if isinstance(shape, Mesh) else len(shape.points)
    if size <= DENSE:
        return shape, False
    return Cloud(shape.sample(DENSE, torch.Generator().manual_seed(0))), True
