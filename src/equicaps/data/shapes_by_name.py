"""The shapes for a command: a data set by its name, or a folder of shapes; which of both, or images, is found out."""

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from equicaps._files import files_at, without_repetition
from equicaps.data.modelnet10 import load_modelnet10
from equicaps.data.reduced import Watch
from equicaps.data.shape_files import SHAPE_SUFFIXES
from equicaps.data.shapes import Shapes
from equicaps.data.shapes_folder import ShapeSplits, load_shapes_folder
from equicaps.errors import NotFoundError, UsageError

SHAPE_NAMES = ("modelnet10",)
"""The data sets of shapes that the commands know."""


def holds_shapes(data: str) -> bool:
    """Whether this is a data set of shapes, or a folder with more shapes than images, by their endings.

    Textures may lie beside a shape; they are images, too.
    """
    folder = Path(data).expanduser()
    if data in SHAPE_NAMES or not folder.is_dir():
        return data in SHAPE_NAMES
    from equicaps.images.decode import IMAGE_SUFFIXES  # Pillow is optional

    endings = [path.suffix.lower() for path in folder.rglob("*") if not _is_hidden(path, folder)]
    shapes, images = (sum(ending in known for ending in endings) for known in (SHAPE_SUFFIXES, IMAGE_SUFFIXES))
    return shapes > images


def holds_only_shapes(folder: Path) -> bool:
    """Whether there are shapes in or below this folder and no images; it is read up to the first image."""
    from equicaps.images.decode import is_image  # Pillow is optional

    found = False
    for path in folder.rglob("*"):
        if is_image(path.name):
            return False
        found = found or path.suffix.lower() in SHAPE_SUFFIXES
    return found


def load_shape_splits(data: str, *, watch: Watch | None = None) -> ShapeSplits:
    """The shapes to train on, and those to test on.

    Args:
        data: one of :data:`SHAPE_NAMES`, or a folder of classes.
        watch: see :func:`load_shapes_folder`.
    """
    if data in SHAPE_NAMES:
        return ShapeSplits(load_modelnet10("train"), load_modelnet10("test"))
    if not Path(data).expanduser().is_dir():
        raise NotFoundError(
            f"{data!r} is neither a data set of shapes ({', '.join(SHAPE_NAMES)}) nor a folder of them."
        )
    if not holds_shapes(data):
        raise UsageError(f"{data} holds no shapes, or more images than shapes; expected a folder of shapes per class.")
    return load_shapes_folder(data, watch=watch)


def load_test_shapes(data: str, *, watch: Watch | None = None) -> Shapes:
    """The shapes to test on, see :func:`load_shape_splits`."""
    return load_modelnet10("test") if data in SHAPE_NAMES else load_shape_splits(data, watch=watch).test


def find_shapes(paths: Sequence[Path]) -> list[Path]:
    """The given files, and every shape in and below the given folders, sorted; without repetition.

    Raises:
        NotFoundError: if a path does not exist or a folder holds no shapes.
        UsageError: if a file is not a shape, by its ending.
    """
    return list(iterate_shapes(paths))


def iterate_shapes(paths: Sequence[Path]) -> Iterator[Path]:
    """Like :func:`find_shapes`, one by one, see :func:`equicaps._files.without_repetition`."""
    return without_repetition(paths, _shapes)


def _is_shape(name: str) -> bool:
    return PurePath(name).suffix.lower() in SHAPE_SUFFIXES


def _shapes(path: Path) -> Iterator[Path]:
    endings = ", ".join(sorted(SHAPE_SUFFIXES))
    if not path.exists():
        raise NotFoundError(f"{path} does not exist; expected a shape or a folder of shapes.")
    if not path.is_dir() and not _is_shape(path.name):
        raise UsageError(f"{path} is not a shape, but the model takes shapes: files ending in {endings}.")
    yield from files_at(
        path, _is_shape, f"{path} holds no shape, but the model takes shapes: files ending in {endings}."
    )


def _is_hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)
