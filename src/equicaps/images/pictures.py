"""Rotate and encode Pillow images in their own mode and resolution; needs Pillow."""

import io

import numpy as np

from equicaps.errors import MissingPackageError

try:
    from PIL import Image
except ImportError as error:
    raise MissingPackageError("Pictures need Pillow: pip install 'equicaps[data]'.") from error

_TURNS = {1: Image.Transpose.ROTATE_90, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_270}


def rotate_back(picture: Image.Image, degrees: float, *, tolerance: float = 0.0, expand: bool = False) -> Image.Image:
    """Rotate a picture clockwise by ``degrees``, in its own mode and resolution.

    Whole quarter turns move pixels without loss. The remainder, at most 45 degrees, is interpolated on a black
    background (transparent if the mode allows it), or ignored if it is within ``tolerance``. Pictures with a palette or
    of one bit are not smoothed, so that they keep their mode.

    Args:
        picture: an image of any mode.
        degrees: how far the picture is rotated counter-clockwise from its upright position.
        tolerance: the largest remainder in degrees that is ignored.
        expand: whether to enlarge the picture so that no corner is cut off.
    """
    quarters = round(degrees / 90)
    rest = degrees - 90 * quarters
    turned = picture.transpose(_TURNS[-quarters % 4]) if quarters % 4 else picture.copy()
    if abs(rest) <= tolerance:
        return turned
    if turned.mode in ("1", "P"):
        fill = _darkest(turned) if turned.mode == "P" else 0
        return turned.rotate(-rest, Image.Resampling.NEAREST, expand=expand, fillcolor=fill)
    if turned.mode.startswith("I"):  # 16 bits, which Pillow does not interpolate
        values = np.asarray(turned)
        floats = Image.fromarray(values.astype(np.float32)).rotate(-rest, Image.Resampling.BICUBIC, expand=expand)
        top = np.iinfo(values.dtype).max if values.dtype.kind in "ui" else 65535
        return Image.fromarray(np.clip(np.rint(np.asarray(floats)), 0, top).astype(values.dtype))
    return turned.rotate(-rest, Image.Resampling.BICUBIC, expand=expand)


def _darkest(picture: Image.Image) -> int:
    """The palette index for the background: the transparent one if there is one, otherwise the darkest."""
    transparent = picture.info.get("transparency")
    if isinstance(transparent, int):
        return transparent
    palette = picture.getpalette() or [0, 0, 0]
    return min(range(len(palette) // 3), key=lambda k: sum(palette[3 * k : 3 * k + 3]))


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
