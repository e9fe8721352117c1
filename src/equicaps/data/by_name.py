"""The images for a command: a data set by its name, or a folder of images."""

from pathlib import Path
from typing import Literal

from equicaps.data.catalogue import CATALOGUE
from equicaps.data.dataset import Dataset
from equicaps.data.folder import Splits, load_folder
from equicaps.errors import NotFoundError

NAMES = ("digits", "mnist", "galaxies")
"""The data sets that the commands know; the others of the catalogue serve the paper's protocols."""


def load_training_splits(data: str, *, size: int) -> Splits:
    """The images to train on and those to evaluate on; the validation split, where there is one, spares the test split.

    Args:
        data: one of :data:`NAMES`, or a folder of classes.
        size: the side of a folder's images.
    """
    if data in NAMES:
        entry = CATALOGUE[data]
        return Splits(entry.load("train"), entry.load("valid" if "valid" in entry.parts else "test"))
    return load_folder(_folder(data), size=size)


def load_test_split(data: str, *, size: int, channels: Literal[1, 3]) -> Dataset:
    """The images to test on.

    Args:
        data: one of :data:`NAMES`, or a folder of classes.
        size: the side of a folder's images.
        channels: the number of channels of a folder's images.
    """
    if data in NAMES:
        return CATALOGUE[data].load("test")
    return load_folder(_folder(data), size=size, channels=channels).test


def _folder(data: str) -> Path:
    if not Path(data).is_dir():
        raise NotFoundError(f"{data!r} is neither a data set ({', '.join(NAMES)}) nor a folder of images.")
    return Path(data)
