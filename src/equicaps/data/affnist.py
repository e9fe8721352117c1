"""affNIST (Tieleman 2013) in its original .mat batches."""

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
from equicaps.errors import DamagedFileError, MissingPackageError

URL = "https://www.cs.toronto.edu/~tijmen/affNIST/32x/transformed/"
SIDE = 40
BATCHES = 32
COUNTS = {"train": 50_000, "valid": 10_000, "test": 10_000}  # images in each batch
_FOLDERS = {"train": "training_batches", "valid": "validation_batches", "test": "test_batches"}


def load_affnist(split: Literal["train", "valid", "test"], root: str | Path | None = None, batches: int = 1) -> Dataset:
    """MNIST's digits under small affine transformations, 40x40; reading them needs ``scipy``.

    A batch holds each digit once. No checksums are published, so the structure of the files is checked instead.

    Args:
        split: which of the three.
        root: a folder with ``test_batches/1.mat`` and so on (``training_batches``, ``validation_batches``), or with a
            folder ``affnist`` that holds them; by default they are searched for in ``EQUICAPS_DATA`` and the user's
            cache, and fetched if they are in neither.
        batches: how many of the 32 batches to load, from the first on; all 32 of the test set take 2 GB as floats.
    """
    if not 1 <= batches <= BATCHES:
        raise ValueError(f"affNIST has {BATCHES} batches; ask for 1 to {BATCHES} of them, not {batches}.")
    paths = locate(COLLECTION, files(split, batches), root)
    images, labels = zip(*(_read(path, COUNTS[split]) for path in paths), strict=True)
    return Dataset(
        f"affNIST ({split}, {batches} of {BATCHES} batches)",
        torch.from_numpy(np.concatenate(images)).unsqueeze(1).float() / 255,
        torch.from_numpy(np.concatenate(labels)),
        DIGITS,
        background="dark",
    )


def files(split: str, batches: int = 1) -> tuple[str, ...]:
    """The names of the files that hold the first batches of a split."""
    return tuple(f"{_FOLDERS[split]}/{number}.mat" for number in range(1, batches + 1))


def _read(path: Path, count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise MissingPackageError("affNIST's .mat files need scipy: pip install 'equicaps[data]'.") from error
    try:
        data = loadmat(path, variable_names=["affNISTdata"], squeeze_me=True)["affNISTdata"]
        images, labels = data["image"].item(), data["label_int"].item()
    except Exception as error:  # loadmat raises whatever its parser trips over
        raise DamagedFileError(f"{path} is truncated, corrupted or not a batch of affNIST: {error}") from error
    if images.shape != (SIDE * SIDE, count) or images.dtype != np.uint8 or labels.shape != (count,):
        raise DamagedFileError(
            f"{path} is not a batch of affNIST: images {images.shape} {images.dtype} and labels {labels.shape}, but "
            f"expected ({SIDE * SIDE}, {count}) uint8 and ({count},)."
        )
    if not np.isin(labels, np.arange(10)).all():
        raise DamagedFileError(f"{path} is corrupted: labels must be 0 to 9.")
    return np.ascontiguousarray(images.T).reshape(count, SIDE, SIDE), labels.astype(np.int64)


def _sources(files: Sequence[str]) -> dict[str, Source]:
    """One archive holds all batches of a split; no checksum of it is published."""
    folder = Path(files[0]).parent
    url = f"{URL}{folder}.zip"
    return {url: partial(from_zip, url, None, [f"{folder}/{number}.mat" for number in range(1, BATCHES + 1)])}


COLLECTION = Collection("affNIST", "affnist", _sources, "regenerate_affnist makes a similar set from MNIST.")
