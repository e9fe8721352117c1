"""Turning images by any angle."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def rotate(
    images: Float[Tensor, "n channels height width"], degrees: Float[Tensor, " n"], size: int | None = None
) -> Float[Tensor, "n channels h w"]:
    """Turn each image counter-clockwise about its centre, bilinearly, on a black ground.

    Args:
        images: square images.
        degrees: one angle for each image.
        size: side of the result; by default the images', otherwise they are cut or padded to it around the centre.
    """
    side = images.shape[-1]
    size = size or side
    angle = torch.deg2rad(degrees)
    # Where a pixel of the result comes from: the point turned back. In image rows y points down, hence the signs.
    cosine, sine = torch.cos(angle), torch.sin(angle)
    turn = torch.stack((torch.stack((cosine, -sine), -1), torch.stack((sine, cosine), -1)), -2) * (size / side)
    grid = F.affine_grid(F.pad(turn, (0, 1)), [len(images), 1, size, size], align_corners=False)
    return F.grid_sample(images, grid, mode="bilinear", align_corners=False)
