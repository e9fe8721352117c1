"""MNIST-rot (Larochelle et al. 2007) in its original files."""

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from equicaps.data.dataset import DIGITS, Dataset
from equicaps.data.fetch import Source, from_zip
from equicaps.data.locate import Collection, locate
from equicaps.errors import DamagedFileError

URL = "https://www.iro.umontreal.ca/~lisa/icml2007data/mnist_rotation_new.zip"
MD5 = "0f9a947ff3d30e95cd685462cbf3b847"  # of the archive, as public loaders state it; it could not be downloaded here
SIDE = 28
COUNTS = {"train": 10_000, "valid": 2_000, "test": 50_000}
_NAME = "mnist_all_rotation_normalized_float_{}.amat"


def load_mnist_rot(split: Literal["train", "valid", "test"], root: str | Path | None = None) -> Dataset:
    """10,000 training, 2,000 validation or 50,000 test digits at any angle, 28x28.

    Training and validation digits are the first 10,000 and the last 2,000 rows of one file; no digit is in both. No
    checksums of the two files are published, so their structure is checked instead: the numbers of rows and columns,
    the labels and the range of the values.

    Args:
        split: which of the three.
        root: a folder with ``mnist_all_rotation_normalized_float_train_valid.amat`` and ``..._test.amat``, or with a
            folder ``mnist_rot`` that holds them; by default they are searched for in ``EQUICAPS_DATA`` and the user's
            cache, and fetched if they are in neither.
    """
    [path] = locate(COLLECTION, files(split), root)
    rows = _read(path, COUNTS["test"] if split == "test" else COUNTS["train"] + COUNTS["valid"])
    if split != "test":
        rows = rows[: COUNTS["train"]] if split == "train" else rows[COUNTS["train"] :]
    images = torch.from_numpy(rows[:, :-1].reshape(-1, 1, SIDE, SIDE)).clamp(0, 1)
    labels = torch.from_numpy(rows[:, -1]).long()
    return Dataset(f"MNIST-rot ({split})", images, labels, DIGITS, background="dark")


def files(split: str) -> tuple[str, ...]:
    """The names of the files that hold a split."""
    return (_NAME.format("test" if split == "test" else "train_valid"),)


def _read(path: Path, count: int) -> NDArray[np.float32]:
    columns = SIDE * SIDE + 1
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", DeprecationWarning
        )  # numpy's way of saying that it met something other than numbers
        try:
            values = np.fromfile(path, np.float32, sep=" ")
        except (DeprecationWarning, ValueError) as error:
            raise DamagedFileError(f"{path} is corrupted: it contains something that is not a number.") from error
    if values.size != count * columns:
        raise DamagedFileError(
            f"{path} is truncated or not the official file: {values.size:,} numbers, but expected {count:,} rows of "
            f"{columns}."
        )
    rows = values.reshape(count, columns)
    pixels, labels = rows[:, :-1], rows[:, -1]
    if not (pixels.min() >= -0.01 and pixels.max() <= 1.01 and np.isin(labels, np.arange(10)).all()):
        raise DamagedFileError(f"{path} is corrupted: pixels must lie in [0, 1] and the last column must be 0 to 9.")
    return rows


def _sources(_: Sequence[str]) -> dict[str, Source]:
    return {URL: partial(from_zip, URL, MD5, [*files("train"), *files("test")])}


COLLECTION = Collection("MNIST-rot", "mnist_rot", _sources, "regenerate_mnist_rot makes a similar set from MNIST.")
