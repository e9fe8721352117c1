"""From drawings and uploads to the square pictures that the page rotates."""

import torch
from jaxtyping import Float
from PIL.Image import Image, new
from torch import Tensor
from torch.nn import functional as F

from equicaps.images.decode import decode_image, pixels
from equicaps.images.preparation import ImageFormat, fit, with_channels
from equicaps.images.resizing import as_floats

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
LARGEST = 512
"""Uploads are shrunk to this side before they become floats, to save memory."""
ROWS = 16
"""How many rows of the shrunk picture are made at a time."""
BOX = 20 / 28
"""The longer side of a digit relative to the image, as in MNIST."""
FAINTEST = 0.05
"""The least contrast that counts as a drawing."""


def read_upload(content: bytes) -> Float[Tensor, "channels height width"]:
    """The pixels in [0, 1] of an image file in one of :data:`FORMATS`.

    Raises:
        DamagedFileError: if it cannot be read, or is too large once decoded.
    """
    picture = _reduced(decode_image(content, "the upload", formats=FORMATS))
    picture.thumbnail((LARGEST, LARGEST))
    return as_floats(pixels(picture))


def _reduced(picture: Image) -> Image:
    """The picture in a mode that can be smoothed, shrunk by a whole number if it is more than twice too large.

    This happens some rows at a time, because Pillow would copy the whole, of up to 200 MB, several times.
    """
    factor = max(1, max(picture.size) // (2 * LARGEST))
    mode = _smooth_mode(picture)
    if factor == 1:
        return picture if picture.mode == mode else picture.convert(mode)
    width, height = picture.size
    small = new(mode, (-(-width // factor), -(-height // factor)))
    for top in range(0, height, factor * ROWS):
        strip = picture.crop((0, top, width, min(top + factor * ROWS, height)))
        small.paste(strip.convert(mode).reduce(factor), (0, top // factor))
    return small


def _smooth_mode(picture: Image) -> str:
    """The mode in which Pillow averages pixels without loss of colours, depth or transparency."""
    if "A" in picture.getbands() or "transparency" in picture.info:
        return "RGBA"
    if picture.mode.startswith("I"):
        return "I"
    return "RGB" if picture.mode in ("P", "1") else picture.mode


def fitted(image: Float[Tensor, "_ _h _w"], channels: int, side: int) -> Float[Tensor, "{channels} {side} {side}"]:
    """The image padded to a square and resized, as ``equicaps predict`` does it."""
    return fit(image.unsqueeze(0), ImageFormat(channels, side, side))[0]


def centred_digit(
    image: Float[Tensor, "_ _h _w"], channels: int, side: int
) -> Float[Tensor, "{channels} {side} {side}"]:
    """The image laid out like a digit of MNIST: white on black, 20 of 28 pixels long, centred on its centre of mass.

    Raises:
        ValueError: if the image is blank.
    """
    grey = with_channels(image.unsqueeze(0), 1)[0, 0]
    border = torch.cat((grey[0], grey[-1], grey[:, 0], grey[:, -1])).median()
    ink = (grey - border).abs() if border > 0.5 else (grey - border).clamp(min=0)
    if ink.max() < FAINTEST:
        raise ValueError("nothing is drawn on this image: it has only one shade.")
    ink = ink / ink.max()
    drawn = ink > 0.3
    high, wide = (torch.nonzero(drawn.any(axis)).flatten() for axis in (1, 0))
    ink = ink[high[0] : high[-1] + 1, wide[0] : wide[-1] + 1]
    scale = BOX * side / max(ink.shape)
    size = [max(1, round(length * scale)) for length in ink.shape]
    small = F.interpolate(ink[None, None], size, mode="bilinear", antialias=True, align_corners=False)[0, 0]
    digit = torch.zeros(side, side)
    y, x = (_offset(small, axis, side) for axis in (0, 1))
    digit[y : y + size[0], x : x + size[1]] = small
    return digit.expand(channels, side, side)


def to_bytes(image: Float[Tensor, "channels height width"]) -> list[int]:
    """The pixels of an image in [0, 1] as bytes: channel by channel, row by row."""
    return (image.clamp(0, 1) * 255).round().to(torch.uint8).flatten().tolist()


def _offset(ink: Float[Tensor, "h w"], axis: int, side: int) -> int:
    """Where the ink starts along an axis when its centre of mass is on the pixel that MNIST calls the centre."""
    mass = ink.sum(1 - axis)
    centre = float((mass * torch.arange(len(mass))).sum() / mass.sum())
    return min(max(0, round(side / 2 - centre)), side - len(mass))
