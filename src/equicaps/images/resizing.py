"""Resizing to a square, such that photographs of any shape take little memory, and a rotated one gives the same."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from equicaps.models.sizes import background, pad_to

AT_ONCE = 2**20
"""How many values are held in float64 at a time: 8 MB."""


def as_floats(images: Shaped[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Bytes become floats in [0, 1]; floats stay as they are."""
    return images if images.is_floating_point() else images.float() / torch.iinfo(images.dtype).max


def rows_at_once(values: int) -> int:
    """How many rows of so many values may be converted at a time."""
    return max(1, AT_ONCE // max(1, values))


def resized(images: Shaped[Tensor, "n channels _h _w"], side: int) -> Float[Tensor, "n channels {side} {side}"]:
    """Images of bytes or floats, padded to squares with their own background and resized; commutes with quarter turns.

    Images that are as long as the side are not resampled. All others are weighted sums of their rows and columns, with
    the weights of bilinear interpolation that is wide enough to average what it leaves out.
    """
    height, width = images.shape[-2:]
    if max(height, width) == side:
        return pad_to(as_floats(images), side, side)
    down, across = (_weights(length, max(height, width), side).to(images.device) for length in (height, width))
    colour = background(images).double()
    rows = rows_at_once(images.shape[:-2].numel() * width)
    columns = colour.new_empty(*images.shape[:-1], side)  # in one piece: results in between would split up the memory
    for top in range(0, height, rows):
        columns[..., top : top + rows, :] = images[..., top : top + rows, :].double() @ across.T
    columns -= colour * across.sum(1)  # without the colour of the background, padding is zero
    found = down @ columns + colour
    return found.to(images.dtype) if images.is_floating_point() else (found / torch.iinfo(images.dtype).max).float()


def _weights(length: int, whole: int, side: int) -> Float[Tensor, "{side} {length}"]:
    """The weights of pixels in a line that is padded to ``whole`` on both sides and then resized to ``side``."""
    reach = max(whole / side, 1)
    centres = (torch.arange(side, dtype=torch.float64) + 0.5) * (whole / side)
    near = (1 - (torch.arange(whole) + 0.5 - centres[:, None]).abs_().div_(reach)).clamp_(min=0)
    near /= near.sum(1, keepdim=True)
    start, odd = divmod(whole - length, 2)
    given = near[:, start : start + length + odd]
    return (given[:, :-1] + given[:, 1:]) / 2 if odd else given  # as in pad_to: an odd difference moves by half a pixel
