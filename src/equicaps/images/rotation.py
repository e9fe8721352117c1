"""Rotating images by any angle."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.images.warp import Interpolation, warp
from equicaps.models.sizes import pad_to


def rotate(
    images: Float[Tensor, "n channels side side"],
    degrees: Float[Tensor, " n"],
    size: int | None = None,
    interpolation: Interpolation = "bilinear",
) -> Float[Tensor, "n channels h w"]:
    """Rotate each square image counter-clockwise about its centre, on its own background.

    Whole quarter turns only move pixels; the remainder, at most 45 degrees, is interpolated. So images that are quarter
    turns of each other give results that are quarter turns of each other.

    Args:
        images: square images of any side.
        degrees: one angle for each image.
        size: the side to which the results are cropped or padded around the centre; by default that of the images.
        interpolation: how values between pixels are computed; bicubic values are clipped to [0, 1].
    """
    if images.shape[-1] != images.shape[-2]:
        raise ValueError(f"rotate: images must be square, but have shape {tuple(images.shape)}; pad them first.")
    size = size or images.shape[-1]
    quarters = torch.round(degrees / 90)
    rest = (degrees - 90 * quarters).to(images.dtype)
    if not len(images):
        return images.new_zeros(0, images.shape[1], size, size)
    turned = torch.stack([torch.rot90(x, int(k), (-2, -1)) for x, k in zip(images, quarters.tolist(), strict=True)])
    exact = (rest == 0)[:, None, None, None]
    if bool(exact.all()):
        return pad_to(turned, size, size)
    angle = torch.deg2rad(rest)
    cosine, sine = torch.cos(angle), torch.sin(angle)
    back = torch.stack((torch.stack((cosine, sine), -1), torch.stack((-sine, cosine), -1)), -2)
    interpolated = warp(turned, back, back.new_zeros(len(images), 2), size, interpolation)
    return torch.where(exact, pad_to(turned, size, size), interpolated)
