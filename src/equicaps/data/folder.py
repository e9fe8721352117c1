"""A user's own images, in one folder for each class or in a list."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median_low
from typing import Literal, NamedTuple

import torch

from equicaps.data.angles import Angles, angles_of_splits, merge_angles, read_angles
from equicaps.data.damaged import or_error, refuse
from equicaps.data.dataset import Dataset
from equicaps.data.division import (
    TEST_FRACTION,
    Division,
    Kind,
    check_request,
    divide,
    divide_folder,
    remark_on_ignored,
)
from equicaps.data.reduced import Side, Watch, reduced
from equicaps.data.table import read_table
from equicaps.errors import EquicapsError, NotFoundError, UsageError
from equicaps.images.background import background_of


class Splits(NamedTuple):
    """A training and a test set with the same classes."""

    train: Dataset
    test: Dataset


class Survey(NamedTuple):
    """What the headers of a folder's training images say."""

    images: int
    side: int
    """The median of the longer sides."""


def survey_folder(path: str | Path) -> Survey:
    """Count the training images of :func:`load_folder` and measure their sizes, without decoding any."""
    parts = _division(Path(path).expanduser(), TEST_FRACTION, 0).parts
    found = [file for files in parts["train"].values() for file in files]
    return Survey(len(found), _median_side(found))


def load_folder(
    path: str | Path,
    *,
    size: int | None = None,
    frame: int | None = None,
    channels: Literal[1, 3] | None = None,
    test_fraction: float = TEST_FRACTION,
    seed: int = 0,
    angles: str | Path | None = None,
    watch: Watch | None = None,
) -> Splits:
    """Images in class folders: ``DATA/train/cat/*.png`` and ``DATA/test/cat/*.png``, or ``DATA/cat/*.png``; or a list.

    A list is a CSV file with the columns ``file`` and ``label``, see :func:`equicaps.data.table.read_table`. If it has
    a column ``angle``, too, those are the known angles of the images; see :func:`equicaps.data.angles.read_angles`.

    The classes are the names of the folders, sorted. Without a folder ``test``, each class is divided by a hash of the
    seed and the file's name, so that adding images does not move others between training and test. Images are padded
    to squares and resized exactly as for a prediction; ``note`` of the result says what was done. Reading needs Pillow.

    Images are decoded once and kept, reduced, in the cache (see :mod:`equicaps.data.reduced`), from where they are read
    when they are needed: any number of them takes little memory. Values are rounded to multiples of 1/255, or of
    1/65535 if any image has 16 bits.

    Hidden files and folders (``.ipynb_checkpoints``) are ignored. Files of a class that have the same bytes are read
    once, for the test set if one of them is there; the same image in another encoding is not noticed.

    Args:
        path: the folder DATA, or a CSV file.
        size: side of the images; by default the median of their longer sides.
        frame: side to which images are resized before they are padded to ``size``; by default ``size`` itself.
        channels: 1 for grey, 3 for colour; by default colour if any image has colours.
        test_fraction: approximate fraction of each class for the test set; both sets get at least one image.
        seed: determines the division.
        angles: a CSV file with the columns ``file`` and ``angle``: the known angles of some or all images.
        watch: is called with how many images have been decoded and how many there are, unless the cache has them.

    Raises:
        FileError: the cache cannot be written; the message says why.
        DamagedFileError: an image cannot be read, or is too large to be read safely; the message names it.
        UsageError: something is wrong with the folders or the list; the message says what.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir() and not is_table(folder):
        raise NotFoundError(
            f"{folder} is not a folder; expected a folder that contains a folder of images for each class, or a CSV "
            "file with the columns 'file' and 'label'."
        )
    name = check_request("load_folder", folder, test_fraction)
    if size is not None and size < 1:
        raise UsageError(f"load_folder: size must be at least 1 pixel, but is {size}.")
    parts, how, remarks, copies = _division(folder, test_fraction, seed)
    classes = tuple(parts["train"])
    files = sorted({file for part in parts.values() for named in part.values() for file in named})
    lists = {part: [file for entry in classes for file in named[entry]] for part, named in parts.items()}
    known, said = angles_of_splits(_angles(folder, angles), lists, copies)
    side = size or _median_side(files)
    found = reduced(folder, files, Side(channels, side, frame or side), watch)
    note, background = _note(found.sizes, side, found.images.shape[1]), background_of(found.brightnesses)
    ignored = [] if is_table(folder) else remark_on_ignored(folder, _images())
    note = "; ".join((note, *remarks, *ignored, *said))
    places, sets = {file: place for place, file in enumerate(files)}, []
    for part, named in parts.items():
        images = found.images.chosen([places[file] for file in lists[part]])
        labels = torch.tensor([label for label, entry in enumerate(classes) for _ in named[entry]])
        sets.append(Dataset(f"{name} ({part}{how})", images, labels, classes, note, background, known[part]))
    return Splits(*sets)


def _angles(folder: Path, given: str | Path | None) -> Angles:
    """The known angles from the column of a list of images, and from a list of angles."""
    lists = [folder] if is_table(folder) and read_table(folder).has_angles else []
    return merge_angles(map(read_angles, lists + ([] if given is None else [Path(given).expanduser()])))


def _division(folder: Path, test_fraction: float, seed: int) -> Division:
    if is_table(folder):
        table = read_table(folder)
        divided = divide(folder.parent, table.files, _images(), test_fraction, seed)
        return divided._replace(remarks=table.remarks + divided.remarks)
    return divide_folder(folder, _images(), test_fraction, seed)


def _images() -> Kind:
    from equicaps.images.decode import IMAGE_SUFFIXES

    return Kind("image", IMAGE_SUFFIXES)


def is_table(path: Path) -> bool:
    """Whether this is a list of images."""
    return path.suffix.lower() == ".csv" and path.is_file()


def _median_side(files: Sequence[Path]) -> int:
    """The median of the longer sides, by the headers; damaged files are named later, together with all others."""
    from equicaps.images.decode import image_size

    found = [or_error(image_size, file) for file in files]
    sizes = [size for size in found if not isinstance(size, EquicapsError)]
    if not sizes:
        refuse([size for size in found if isinstance(size, EquicapsError)], of=len(files))
    return median_low(sorted(map(max, sizes)))


def _note(sizes: Sequence[tuple[int, int]], side: int, channels: int) -> str:
    """How many images of both splits were resized, to which size and from which."""
    count, changed = len(sizes), [pair for pair in sizes if pair != (side, side)]
    colours = "colour" if channels == 3 else "grey"
    if not changed:
        return f"{count} {colours} images in all, {side}x{side}, unchanged"
    by_area = sorted(set(changed), key=lambda pair: (pair[0] * pair[1], pair))
    names = [f"{width}x{height}" for width, height in by_area]
    origin = " or ".join(names) if len(names) < 3 else f"sizes between {names[0]} and {names[-1]}"
    which = "each" if len(changed) == count else f"{len(changed)} of them"
    note = f"{count} {colours} images in all, {which} resized to {side}x{side} from {origin}"
    padded = sum(width != height for width, height in sizes)
    return f"{note} ({padded} padded to a square)" if padded else note
