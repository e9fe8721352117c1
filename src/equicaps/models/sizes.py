"""The image sizes at which a network is exact under quarter turns, and padding to them."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn import functional as F

REACH = 4096
"""How far above a given side to search for a legal one."""


def legal_sizes(grid: Callable[[int], int | None], near: int) -> list[int]:
    """The nearest sides at or below and at or above ``near`` at which quarter turns are exact.

    Args:
        grid: maps the side of an image to that of the last grid, or to None where a quarter turn would not be exact.
        near: the side to start from.
    """

    def legal(side: int) -> bool:
        found = grid(side)
        return found is not None and found > 0

    below = next((side for side in range(near, 0, -1) if legal(side)), None)
    above = next((side for side in range(near, near + REACH) if legal(side)), None)
    return sorted({side for side in (below, above) if side is not None})


def check_size(height: int, width: int, grid: Callable[[int], int | None]) -> None:
    """Raise an error that names the nearest legal sizes unless quarter turns are exact at this size."""
    for name, side in (("height", height), ("width", width)):
        nearest = legal_sizes(grid, side)
        if side not in nearest:
            raise ValueError(
                f"image {name} {side} does not fit: a quarter turn must map the network's blocks onto themselves. The "
                f"nearest sides are {' and '.join(map(str, nearest))}: resize the images, or build the network with "
                "`pad=True` to pad them."
            )


def pad_to_legal(
    images: Float[Tensor, "batch channels height width"], grid: Callable[[int], int | None]
) -> Float[Tensor, "batch channels h w"]:
    """Pad images to the next legal size; see :func:`pad_to`."""
    height, width = (max(legal_sizes(grid, side), default=0) for side in images.shape[-2:])
    if height < images.shape[-2] or width < images.shape[-1]:
        raise ValueError(f"no legal size at or above {tuple(images.shape[-2:])} was found: these blocks fit no image.")
    return pad_to(images, height, width)


def background(images: Shaped[Tensor, "batch channels height width"]) -> Shaped[Tensor, "batch channels 1 1"]:
    """The colour around what each image shows: the median of its outermost pixels, or the one of them nearest to it.

    The median is taken in every channel, and can therefore be a colour that the image does not have: black, where red,
    green and blue pixels alternate. It is replaced only then, and never in a grey image.

    Wherever pixels have to be invented, in padding and rotating, they get this colour. A quarter turn does not change
    it, and where an object touches the border it takes more than half of it to count.
    """
    sides = (images[..., 0, :], images[..., -1, :], images[..., 1:-1, 0], images[..., 1:-1, -1])
    border = images.flatten(-2) if 1 in images.shape[-2:] else torch.cat(sides, -1)  # a line is all border
    median = border.sort(-1).values[..., (border.shape[-1] - 1) // 2, None]
    return (median if images.shape[1] == 1 else _nearest(median, border)).unsqueeze(-1)


def _nearest(colour: Shaped[Tensor, "batch channels 1"], pixels: Shaped[Tensor, "batch channels n"]) -> Tensor:
    """The colour itself if a pixel has it, otherwise the nearest pixel: differences, in steps of 1/255, are summed up.

    Of several, the smallest by its first channel, then its second, ...: rotations and rounding errors must not choose.
    """
    largest = 1 if pixels.is_floating_point() else torch.iinfo(pixels.dtype).max
    away = ((pixels.float() - colour.float()) * (255 / largest)).round().abs().sum(1, keepdim=True)
    least = away.amin(-1, keepdim=True)
    chosen, found = away == least, []
    for values in pixels.split(1, 1):
        found.append(torch.where(chosen, values, values.amax(-1, keepdim=True)).amin(-1, keepdim=True))
        chosen = chosen & (values == found[-1])
    return torch.where(least == 0, colour, torch.cat(found, 1))


def pad_to(
    images: Float[Tensor, "batch channels _h _w"], height: int, width: int
) -> Float[Tensor, "batch channels {height} {width}"]:
    """Pad images with their :func:`background` equally on opposite sides, or crop them; commutes with quarter turns.

    Where the sizes differ by an odd number, neighbouring pixels are averaged first, which moves the grid by half a
    pixel: padding one side more than the other would not be symmetric.
    """
    if tuple(images.shape[-2:]) == (height, width):
        return images
    colour = background(images)
    if (height - images.shape[-2]) % 2:
        images = F.avg_pool2d(images - colour, (2, 1), stride=1, padding=(1, 0)) + colour
    if (width - images.shape[-1]) % 2:
        images = F.avg_pool2d(images - colour, (1, 2), stride=1, padding=(0, 1)) + colour
    vertical, horizontal = (height - images.shape[-2]) // 2, (width - images.shape[-1]) // 2
    around = (horizontal, horizontal, vertical, vertical)
    given = F.pad(torch.ones_like(images[:1, :1], dtype=torch.bool), around)
    return torch.where(given, F.pad(images, around), colour)
