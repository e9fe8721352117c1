"""Rotate and encode Pillow images in their own mode and resolution; needs Pillow."""

import io
import math

import numpy as np
import torch

from equicaps.errors import FileError, MissingPackageError
from equicaps.models.sizes import background

try:
    from PIL import Image
except ImportError as error:
    raise MissingPackageError("Pictures need Pillow: pip install 'equicaps[data]'.") from error

EXPANDED_MEGAPIXELS = 150
"""The largest picture that is written: three times the largest that is read."""
_TURNS = {1: Image.Transpose.ROTATE_90, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_270}


def rotate_back(picture: Image.Image, degrees: float, *, tolerance: float = 0.0, expand: bool = False) -> Image.Image:
    """Rotate a picture clockwise by ``degrees``, in its own mode and resolution.

    Whole quarter turns move pixels without loss. The remainder, at most 45 degrees, is interpolated on the background
    of the picture (transparent if the mode allows it), or ignored if it is within ``tolerance``. Pictures of one bit or
    with a palette are not smoothed, so that they keep their mode.

    Args:
        picture: an image of any mode.
        degrees: how far the picture is rotated counter-clockwise from its upright position.
        tolerance: the largest remainder in degrees that is ignored.
        expand: whether to enlarge the picture so that no corner is cut off.

    Raises:
        FileError: if it would become larger than :data:`EXPANDED_MEGAPIXELS`.
    """
    quarters = round(degrees / 90)
    rest = degrees - 90 * quarters
    turned = picture.transpose(_TURNS[-quarters % 4]) if quarters % 4 else picture.copy()
    if abs(rest) <= tolerance:
        return turned
    if expand:
        _check_expanded(turned, rest)
    fill = _background(turned)
    if turned.mode in ("1", "P"):
        return turned.rotate(-rest, Image.Resampling.NEAREST, expand=expand, fillcolor=fill)
    if turned.mode.startswith("I"):  # 16 bits, which Pillow does not interpolate
        values = np.asarray(turned)
        floats = Image.fromarray(values.astype(np.float32))
        floats = floats.rotate(-rest, Image.Resampling.BICUBIC, expand=expand, fillcolor=fill)
        top = np.iinfo(values.dtype).max if values.dtype.kind in "ui" else 65535
        return Image.fromarray(np.clip(np.rint(np.asarray(floats)), 0, top).astype(values.dtype))
    return turned.rotate(-rest, Image.Resampling.BICUBIC, expand=expand, fillcolor=fill)


def _check_expanded(picture: Image.Image, degrees: float) -> None:
    """A long and narrow picture becomes a large square."""
    (width, height), angle = picture.size, math.radians(abs(degrees))
    cosine, sine = math.cos(angle), math.sin(angle)
    wide, high = round(width * cosine + height * sine), round(width * sine + height * cosine)
    if wide * high > EXPANDED_MEGAPIXELS * 10**6:
        raise FileError(
            f"a picture of {width}x{height} pixels becomes one of {wide}x{high} when it is rotated without cutting off "
            f"its corners, and the most is {EXPANDED_MEGAPIXELS} megapixels: rotate it without --expand."
        )


def _background(picture: Image.Image) -> int | tuple[int, ...]:
    """Transparent where the mode allows it; otherwise as in training and prediction (the mode, of a palette)."""
    transparent = picture.info.get("transparency")
    if picture.mode == "P" and isinstance(transparent, int):
        return transparent
    values = np.asarray(picture)
    sides = (values[0], values[-1], values[1:-1, 0], values[1:-1, -1])
    border = values.reshape(-1, *values.shape[2:]) if 1 in values.shape[:2] else np.concatenate(sides)
    if picture.mode == "P":
        return int(np.bincount(border).argmax())
    if "A" in picture.getbands():
        return (0,) * len(picture.getbands())
    line = border.reshape(len(border), -1).T.astype(np.uint8 if border.dtype == np.uint8 else np.float64)
    scale = 255 if picture.mode == "1" else 1
    colour = tuple(int(value) * scale for value in background(torch.from_numpy(line)[None, :, None]).flatten())
    return colour if border.ndim > 1 else colour[0]


def encoded(picture: Image.Image) -> bytes:
    """The content of a lossless file: PNG, or TIFF for modes that PNG cannot hold; see :func:`suffix`."""
    file = io.BytesIO()
    profile = picture.info.get("icc_profile")
    picture.save(file, format="PNG" if suffix(picture) == ".png" else "TIFF", icc_profile=profile)
    return file.getvalue()


LOSSLESS_SUFFIXES = (".png", ".tiff")


def suffix(picture: Image.Image) -> str:
    """The suffix of the file that :func:`encoded` makes of this picture, one of :data:`LOSSLESS_SUFFIXES`."""
    held_by_png = picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")
    return LOSSLESS_SUFFIXES[0 if held_by_png else 1]
