"""A small part of MNIST that ships with the package, for the demo, the tests and a first training."""

import hashlib
import io
from importlib import resources
from typing import Literal

import numpy as np
import torch

from equicaps.data.dataset import DIGITS, Dataset
from equicaps.errors import DamagedFileError

FILE = "mnist_subset.npz"
SHA256 = "1e6e15129d36452e2d693bed55791489173edf3b9add4bc32ec8a3e41aa9f478"


def embedded_digits(split: Literal["train", "test"]) -> Dataset:
    """4,000 digits of MNIST's training set or 1,000 of its test set, the same number of each class.

    They are evenly spaced within each class, unchanged, and in MNIST's order. ``docs/make_embedded_digits.py`` writes
    the file, which also holds the place of each digit in MNIST (``train_indices``, ``test_indices``).
    """
    path = resources.files("equicaps.data") / "files" / FILE
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise DamagedFileError(f"{path} is damaged: its sha256 is {found}, not {SHA256}. Install equicaps again.")
    with np.load(io.BytesIO(content)) as arrays:
        images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
    return Dataset(
        f"MNIST subset ({split}, {len(images):,} digits)",
        torch.from_numpy(images).unsqueeze(1).float() / 255,
        torch.from_numpy(labels).long(),
        DIGITS,
        background="dark",
    )
