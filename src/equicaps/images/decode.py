"""Read image files of any kind safely; needs Pillow."""

import contextlib
import io
import re
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from equicaps._files import check_regular, files_at, without_repetition
from equicaps.errors import DamagedFileError, MissingPackageError, NotFoundError, UsageError
from equicaps.images.background import on_black_or_white
from equicaps.images.resizing import rows_at_once

try:
    from PIL import Image, ImageOps, UnidentifiedImageError

    from equicaps.images.bounds import check_cost
except ImportError as error:
    raise MissingPackageError("Image files need Pillow: pip install 'equicaps[data]'.") from error

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
"""The only formats that are decoded, as Pillow names them: others may start a program, as PostScript does."""
IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm", ".pbm"})
_HEADERS = threading.Lock()
"""One thread at a time opens a header, because the filters of warnings belong to the whole process."""


def find_images(paths: Sequence[Path]) -> list[Path]:
    """List the given files, and every image in and below the given folders; without repetition.

    Files are listed in the given order, whatever their names are. The images of a folder are sorted, and hidden files
    are left out.

    Raises:
        NotFoundError: if a path does not exist or a folder holds no images.
    """
    return list(iterate_images(paths))


def iterate_images(paths: Sequence[Path]) -> Iterator[Path]:
    """Like :func:`find_images`, one by one: only the names in a single folder are in memory.

    Where one of the paths lies in another one, all that were found are remembered, in order not to repeat any.
    """
    return without_repetition(paths, _images)


def is_remote(name: str) -> bool:
    """Whether this is an address such as ``s3://bucket/folder`` rather than a path."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def is_image(name: str) -> bool:
    """Whether a file with this name counts as an image when a folder is searched."""
    return PurePath(name).suffix.lower() in IMAGE_SUFFIXES


def _images(path: Path) -> Iterator[Path]:
    if not path.exists():
        raise NotFoundError(f"{path} does not exist; expected an image or a folder of images.")
    endings = ", ".join(sorted(IMAGE_SUFFIXES))
    yield from files_at(path, is_image, f"{path} holds no image; expected files ending in {endings}.")


class Header(NamedTuple):
    """What the header of a file says about its image."""

    width: int
    height: int
    channels: int
    """1 if the image cannot have colours, otherwise 3."""
    deep: bool
    """Whether it has 16 bits."""


def image_header(path: Path) -> Header:
    """Read the header of a file."""
    with _explained(path), _opened(path) as picture:
        deep = picture.mode.startswith("I")
        grey = deep or (picture.mode in ("1", "L") and "transparency" not in picture.info)
        return Header(*picture.size, 1 if grey else 3, deep)


def image_size(source: str | Path | bytes) -> tuple[int, int]:
    """The width and height that the header of a file states, which is given by its path or its content."""
    if isinstance(source, bytes):
        return _header(io.BytesIO(source), "the image").size
    with _explained(source), _opened(Path(source)) as picture:
        return picture.size


def open_image(path: Path) -> Image.Image:
    """Read a picture in its own mode and resolution, oriented as its EXIF data say; of several frames, the first."""
    with _explained(path), _opened(path) as picture:
        return _oriented(picture)


def decode_image(content: bytes, name: str, *, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    """Like :func:`open_image`, for the content of a file.

    Args:
        content: the bytes of the file.
        name: what error messages call it.
        formats: the only ones of :data:`FORMATS` to accept.
    """
    with _explained(name):
        return _oriented(_header(io.BytesIO(content), name, formats))


def pixels(picture: Image.Image) -> Tensor:
    """The pixels with shape (channels, height, width): one channel if all are grey, otherwise three.

    They are bytes or, from pictures of 16 bits, floats in [0, 1]. Transparent parts become black, or white around dark
    objects. Floating-point pictures are refused, because the range of their values is unknown.
    """
    return _grey_if_possible(_values(picture))


def read_pixels(source: str | Path | bytes) -> Tensor:
    """The :func:`pixels` of a file that is given by its path or its content."""
    name = "the image" if isinstance(source, bytes) else source
    with _explained(name):
        return pixels(decode_image(source, "the image") if isinstance(source, bytes) else open_image(Path(source)))


def _oriented(picture: Image.Image) -> Image.Image:
    """The decoded picture, rotated as its EXIF data say; it is copied only if they say something."""
    picture.load()
    ImageOps.exif_transpose(picture, in_place=True)
    return picture


def _grey_if_possible(image: Tensor) -> Tensor:
    return image[:1] if all(torch.equal(channel, image[0]) for channel in image[1:]) else image


@contextlib.contextmanager
def _explained(path: Path | str) -> Iterator[None]:
    try:
        yield
    except (DamagedFileError, MemoryError):
        raise
    except UsageError as error:
        raise DamagedFileError(f"{path} is refused: {error}") from error
    except Exception as error:  # Pillow raises whatever its decoders trip over
        if isinstance(error, OSError) and error.errno is not None:  # from the file system, not from a decoder
            raise
        raise DamagedFileError(f"{path} is truncated or corrupted: {error}. Repair or remove it.") from error


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """The image, of which only the header has been read."""
    check_regular(path)
    with path.open("rb") as file:
        yield _header(file, path)


def _header(file: io.BufferedReader | io.BytesIO, name: Path | str, formats: tuple[str, ...] = FORMATS) -> Image.Image:
    try:
        with _HEADERS, warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            picture = Image.open(file, formats=formats)
    except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
        raise DamagedFileError(f"{name} is refused: {error}") from error
    except UnidentifiedImageError as error:
        raise DamagedFileError(f"{name} is not a readable image: its format is not known.") from error
    except Exception as error:  # broken headers raise nearly anything
        raise DamagedFileError(f"{name} is not a readable image: {error}. Repair or remove it.") from error
    check_cost(picture, file, name)
    return picture


def _values(picture: Image.Image) -> Tensor:
    """Bytes, or floats in [0, 1], with shape (channels, height, width)."""
    if picture.mode == "F":
        raise UsageError("the range of a floating-point image's values is unknown; convert it to 8 or 16 bits first.")
    if picture.mode.startswith("I"):  # 16 bits
        return torch.from_numpy(np.array(picture, dtype=np.float32)).div_(65535).clamp_(0, 1).unsqueeze(0)
    transparent = "A" in picture.getbands() or "transparency" in picture.info
    mode = "RGBA" if transparent else "L" if picture.mode in ("1", "L") else "RGB"
    width, height = picture.size
    values = torch.empty(len(mode), height, width, dtype=torch.uint8)
    step = rows_at_once(width * len(mode))  # Pillow would copy the whole several times
    for top in range(0, height, step):
        strip = picture.crop((0, top, width, min(top + step, height))).convert(mode)
        values[:, top : top + step] = torch.from_numpy(np.atleast_3d(np.array(strip))).permute(2, 0, 1)
    return on_black_or_white(values.unsqueeze(0))[0] if transparent else values
