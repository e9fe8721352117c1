"""From whatever people have to what a network takes."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

GREY = (0.299, 0.587, 0.114)
"""Weights of red, green and blue in perceived brightness (ITU-R BT.601)."""


def as_batch(images: Tensor) -> Float[Tensor, "n channels height width"]:
    """Bytes or floats in [0, 1] of shape (h, w), (n, h, w) or (n, c, h, w) as a batch of floats."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, but is {type(images).__name__}; try torch.as_tensor(images).")
    if images.dtype == torch.uint8:
        images = images.float() / 255
    if images.dtype in (torch.float16, torch.bfloat16):
        images = images.float()
    if images.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"images must be bytes (uint8) or floats in [0, 1], but have dtype {images.dtype}.")
    if images.ndim not in (2, 3, 4) or (images.ndim == 4 and images.shape[1] not in (1, 3)):
        raise ValueError(
            "images must have shape (height, width), (n, height, width) or (n, channels, height, width) with 1 or 3 "
            f"channels, but have {tuple(images.shape)}."
        )
    if min(images.shape[-2:]) < 1:
        raise ValueError(f"images have no pixels: shape {tuple(images.shape)}.")
    if not images.isfinite().all():
        raise ValueError("images contain NaN or infinite pixels; clean them first, for instance with torch.nan_to_num.")
    if images.ndim == 2:
        images = images.unsqueeze(0)
    return images.unsqueeze(1) if images.ndim == 3 else images


def to_network(
    images: Float[Tensor, "n channels height width"], channels: int, size: int, frame: int
) -> Float[Tensor, "n c size size"]:
    """Grey or colour as the network has it; padded to a square, brought to ``frame`` pixels, padded to ``size``.

    Every step commutes with turns by 90 degrees. Images that already have the network's size or the frame's are not
    resampled.
    """
    if channels == 1 and images.shape[1] == 3:
        images = torch.einsum("nchw,c->nhw", images, images.new_tensor(GREY)).unsqueeze(1)
    elif channels == 3 and images.shape[1] == 1:
        images = images.expand(-1, 3, -1, -1)
    images = square(images)
    if images.shape[-1] not in (size, frame):
        images = F.interpolate(images, (frame, frame), mode="bilinear", antialias=True, align_corners=False)
    if (size - images.shape[-1]) % 2:  # the centre lies between pixels
        images = F.avg_pool2d(images, 2, stride=1, padding=1)
    margin = (size - images.shape[-1]) // 2
    return F.pad(images, (margin,) * 4).clamp(0, 1)


def square(images: Float[Tensor, "n channels height width"]) -> Float[Tensor, "n channels side side"]:
    """Padded with black around the centre; where the difference is odd, between two pixels, by averaging."""
    height, width = images.shape[-2:]
    side = max(height, width)
    if (side - height) % 2:
        images = F.avg_pool2d(images, (2, 1), stride=1, padding=(1, 0))
    if (side - width) % 2:
        images = F.avg_pool2d(images, (1, 2), stride=1, padding=(0, 1))
    vertical, horizontal = (side - images.shape[-2]) / 2, (side - images.shape[-1]) / 2
    return F.pad(images, (math.floor(horizontal),) * 2 + (math.floor(vertical),) * 2)
