"""Turning images by any angle."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.warp import Interpolation, warp


def rotate(
    images: Float[Tensor, "n channels height width"],
    degrees: Float[Tensor, " n"],
    size: int | None = None,
    interpolation: Interpolation = "bilinear",
) -> Float[Tensor, "n channels h w"]:
    """Turn each image counter-clockwise about its centre, on a black ground.

    Args:
        images: square images.
        degrees: one angle for each image.
        size: side of the result; by default the images', otherwise they are cut or padded to it around the centre.
        interpolation: between pixels; bicubic values are clipped to [0, 1].
    """
    angle = torch.deg2rad(degrees)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    back = torch.stack((torch.stack((cosine, sine), -1), torch.stack((-sine, cosine), -1)), -2)
    return warp(images, back, back.new_zeros(len(images), 2), size or images.shape[-1], interpolation)


def turn(
    images: Float[Tensor, "n channels side side"], degrees: Float[Tensor, " n"]
) -> Float[Tensor, "n channels side side"]:
    """Turn each square image counter-clockwise; whole quarter turns only move pixels.

    The rest, at most 45 degrees, is interpolated as in :func:`rotate`, and nothing is where there is none. So images
    that are quarter turns of each other give results that are, too.
    """
    quarters = torch.round(degrees / 90)
    rest = (degrees - 90 * quarters).to(images.dtype)
    if not len(images):
        return images
    turned = torch.stack(
        [torch.rot90(x, int(k), (-2, -1)) for x, k in zip(images, quarters.tolist(), strict=True)]
    )  # fmt: skip
    return torch.where((rest == 0)[:, None, None, None], turned, rotate(turned, rest))
