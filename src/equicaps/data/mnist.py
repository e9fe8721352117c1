"""MNIST in its original idx files."""

import gzip
import os
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from equicaps.data.dataset import DIGITS, Dataset

_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


def load_mnist(split: Literal["train", "test"], root: str | Path | None = None) -> Dataset:
    """The 60,000 training or 10,000 test digits, 28x28.

    Args:
        split: which part.
        root: folder with the four idx files, gzipped or not, or with a folder ``mnist`` of them; by default the
            environment variable ``EQUICAPS_DATA``.
    """
    folder = _find(root)
    images, labels = (_read_idx(folder, name) for name in _FILES[split])
    pixels = torch.from_numpy(images).unsqueeze(1).float() / 255
    return Dataset(f"MNIST ({split})", pixels, torch.from_numpy(labels).long(), DIGITS)


def _find(root: str | Path | None) -> Path:
    given = root if root is not None else os.environ.get("EQUICAPS_DATA")
    if given is None:
        raise FileNotFoundError(
            "MNIST: no data folder. Pass one, or set EQUICAPS_DATA to the folder that holds the four files "
            f"{', '.join(name for pair in _FILES.values() for name in pair)} (with or without .gz)."
        )
    for folder in (Path(given) / "mnist", Path(given)):
        if any(folder.glob("t10k-images-idx3-ubyte*")):
            return folder
    raise FileNotFoundError(f"MNIST: no t10k-images-idx3-ubyte or .gz in {given} or {Path(given) / 'mnist'}.")


def _read_idx(folder: Path, name: str) -> np.ndarray:
    path = folder / name
    content = path.read_bytes() if path.exists() else gzip.decompress((folder / f"{name}.gz").read_bytes())
    dimensions = content[3]
    shape = tuple(np.frombuffer(content, ">u4", count=dimensions, offset=4).astype(int).tolist())
    values = np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions)
    if values.size != int(np.prod(shape)):
        raise ValueError(f"MNIST: {name} in {folder} is truncated: {values.size} values, the header says {shape}.")
    return values.reshape(shape).copy()
