"""Resample a batch of images, each under its own affine map."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from equicaps.models.sizes import background

Interpolation = Literal["bilinear", "bicubic"]


def warp(
    images: Float[Tensor, "n channels height width"],
    back: Float[Tensor, "n 2 2"],
    shift: Float[Tensor, "n 2"],
    size: int,
    interpolation: Interpolation = "bilinear",
) -> Float[Tensor, "n channels {size} {size}"]:
    """Sample each image, on its own background, at ``back @ (x - shift)`` for every pixel x of a square result.

    Coordinates are pixels from the centre, x right and y up. Bicubic values can leave [0, 1]; they are clipped.

    Args:
        images: images of any height and width.
        back: the inverse of the linear map that each image undergoes.
        shift: the position to which the centre moves; applied after the linear map.
        size: the side of the result.
        interpolation: how values between pixels are computed.
    """
    height, width = images.shape[-2:]
    flip = back.new_tensor([[1.0, -1.0], [-1.0, 1.0]])  # grid_sample's y points down
    scale = back.new_tensor([[size / width], [size / height]])  # grid_sample measures in half sides
    theta = back * flip * scale
    away = theta @ (shift * shift.new_tensor([-2 / size, 2 / size])).unsqueeze(-1)
    grid = F.affine_grid(torch.cat((theta, away), -1), [len(images), 1, size, size], align_corners=False)
    colour = background(images)
    warped = F.grid_sample(images - colour, grid, mode=interpolation, align_corners=False) + colour
    return warped.clamp(0, 1) if interpolation == "bicubic" else warped
