"""Reading image files of any kind, safely; needs Pillow."""

import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from equicaps.data.errors import DamagedFileError

try:
    from PIL import Image, ImageOps
except ImportError as error:
    raise ImportError("Image files need Pillow: pip install 'equicaps[data]'.") from error

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".pgm", ".ppm", ".pbm"})
MEGAPIXELS = 50
"""Larger images are refused before they are decoded: a small file can unpack to gigabytes."""


def image_size(path: Path) -> tuple[int, int]:
    """Width and height from the file's header."""
    with _opened(path) as picture:
        return picture.size


def read_image(path: Path, size: int) -> Tensor:
    """The image in [0, 1], fitted into a square: one channel if it is grey, otherwise three.

    Turned as its EXIF data say, transparent parts black, scaled (smoothed, never distorted) until its longer side
    fits, and padded with black around it. An image of exactly that size keeps its values. Of several frames, the first.
    """
    try:
        with _opened(path) as picture:
            channels = [_fit(channel, size) for channel in _channels(ImageOps.exif_transpose(picture))]
    except DamagedFileError:
        raise
    except Exception as error:  # Pillow raises whatever its decoders trip over
        raise DamagedFileError(f"{path} is truncated or corrupted: {error}. Mend it or take it out.") from error
    pixels = torch.stack(channels)
    return pixels[:1] if bool((pixels == pixels[:1]).all()) else pixels


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Image.Image]:
    """The image with its header read and its pixels not yet."""
    with path.open("rb") as file:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", Image.DecompressionBombWarning)
                picture = Image.open(file)
        except (Image.DecompressionBombWarning, Image.DecompressionBombError) as error:
            raise DamagedFileError(f"{path} is refused: {error}") from error
        except Exception as error:  # broken headers raise nearly anything
            raise DamagedFileError(f"{path} is not a readable image: {error}. Mend it or take it out.") from error
        width, height = picture.size
        if width * height > MEGAPIXELS * 10**6:
            raise DamagedFileError(
                f"{path} is refused: {width}x{height} is more than {MEGAPIXELS} megapixels; make it smaller first."
            )
        yield picture


def _channels(picture: Image.Image) -> tuple[Image.Image, ...]:
    """Floating-point images of values in [0, 1]."""
    if picture.mode == "F":
        raise ValueError("its floating-point values have no known range")
    if picture.mode.startswith("I"):  # 16 bits
        return (_scaled(picture, 65535),)
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", picture.size, (0, 0, 0, 255)), picture)
    grey = picture.mode in ("1", "L")
    return tuple(_scaled(channel, 255) for channel in picture.convert("L" if grey else "RGB").split())


def _scaled(channel: Image.Image, largest: int) -> Image.Image:
    return Image.fromarray(np.clip(np.asarray(channel, dtype=np.float32) / largest, 0, 1))


def _fit(channel: Image.Image, size: int) -> Tensor:
    longer = max(channel.size)
    if longer != size:
        sides = [max(1, round(side * size / longer)) for side in channel.size]
        channel = channel.resize((sides[0], sides[1]), Image.Resampling.BILINEAR)
    square = torch.zeros(size, size)
    left, top = (size - channel.width) // 2, (size - channel.height) // 2
    square[top : top + channel.height, left : left + channel.width] = torch.from_numpy(np.array(channel))
    return square
