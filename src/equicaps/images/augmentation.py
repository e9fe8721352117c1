"""Random views of a batch, made on the fly: the paper's protocols."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.images.warp import Interpolation, warp

Placement = Literal["centre", "frame", "ink"]


class Views(NamedTuple):
    """Images after augmentation, and by how much each was turned (counter-clockwise)."""

    images: Float[Tensor, "n channels size size"]
    degrees: Float[Tensor, " n"]


@dataclass(frozen=True)
class Augmentation:
    """Each image scaled, sheared, turned and placed at random on a black square, by one interpolation.

    A pure function of the batch and the generator's state: the same seed gives the same views.

    Attributes:
        size: side of the views.
        rotation: largest angle in degrees, to either side, uniform; 180 for any angle.
        shear: largest shear to either side, uniform: x grows by up to that much for each y.
        scale: smallest and largest factor, uniform, drawn for each axis.
        shift: largest shift of a centred image in pixels, to either side and along both axes, uniform.
        placement: ``"centre"``; ``"frame"``, anywhere in whole pixels such that the image's frame stays inside
            (translated MNIST: 28x28 in 40x40); ``"ink"``, anywhere such that everything that is not black stays
            inside after the other changes (affNIST). What does not fit is centred.
        interpolation: between pixels; bicubic values are clipped to [0, 1].
    """

    size: int
    _: KW_ONLY
    rotation: float = 0.0
    shear: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0
    placement: Placement = "centre"
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"Augmentation: size must be at least 1 pixel, but is {self.size}.")
        if not 0 <= self.rotation <= 180:
            raise ValueError(f"Augmentation: rotation must be 0 to 180 degrees (to either side), not {self.rotation}.")
        if not 0 <= self.shear < math.inf:
            raise ValueError(f"Augmentation: shear must be 0 or more (to either side), but is {self.shear}.")
        if not 0 <= self.shift < math.inf:
            raise ValueError(f"Augmentation: shift must be 0 or more pixels (to either side), but is {self.shift}.")
        if not 0 < self.scale[0] <= self.scale[1] < math.inf:
            raise ValueError(f"Augmentation: scale must be (smallest, largest), both above 0, but is {self.scale}.")

    def __call__(
        self, images: Float[Tensor, "n channels height width"], generator: torch.Generator | None = None
    ) -> Views:
        """Draw one view of each image.

        Args:
            images: floats in [0, 1], of any size.
            generator: the only source of randomness; by default torch's own.
        """
        device = "cpu" if generator is None else generator.device
        # Always six numbers an image, so that two augmentations draw the same angles from the same seed.
        drawn = torch.rand(6, len(images), generator=generator, device=device).to(images)
        degrees = (2 * drawn[0] - 1) * self.rotation
        shear = (2 * drawn[1] - 1) * self.shear
        scale = self.scale[0] + drawn[2:4] * (self.scale[1] - self.scale[0])
        forth, back = _linear_map(degrees, shear, scale)
        shift = self._shift(images, forth, drawn[4:].T)
        return Views(warp(images, back, shift, self.size, self.interpolation), degrees)

    def _shift(self, images: Tensor, forth: Tensor, drawn: Tensor) -> Tensor:
        if self.placement == "frame":
            room = self.size - drawn.new_tensor([images.shape[-1], images.shape[-2]])
            if room.min() < 0:
                raise ValueError(
                    f"Augmentation: images of {images.shape[-2]}x{images.shape[-1]} do not stay inside "
                    f"{self.size}x{self.size}; choose a larger size or placement 'centre'."
                )
            return torch.minimum((drawn * (room + 1)).floor(), room) - room / 2
        if self.placement == "ink":
            low, high = _extent(images, forth, 2 if self.interpolation == "bicubic" else 1)
            # Of the first pixel beyond the frame, half a pixel outside, nothing of the ink may be seen.
            low, high = -(self.size + 1) / 2 - low, (self.size + 1) / 2 - high
            return low + torch.where(high > low, drawn, 0.5) * (high - low)
        return (2 * drawn - 1) * self.shift


def _linear_map(degrees: Tensor, shear: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """x -> turn(shear(scale x)) for each image, y up, and its inverse."""
    angle = torch.deg2rad(degrees)
    cosine, sine, (x, y) = torch.cos(angle), torch.sin(angle), scale
    forth = (x * cosine, y * (shear * cosine - sine), x * sine, y * (shear * sine + cosine))
    back = ((cosine + shear * sine) / x, (sine - shear * cosine) / x, -sine / y, cosine / y)
    return torch.stack(forth, -1).unflatten(-1, (2, 2)), torch.stack(back, -1).unflatten(-1, (2, 2))


def _extent(images: Tensor, forth: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """How far the ink goes after the linear map, left and down, right and up; interpolation reaches beyond pixels."""
    height, width = images.shape[-2:]
    x = torch.arange(width, dtype=images.dtype, device=images.device) - (width - 1) / 2
    y = (height - 1) / 2 - torch.arange(height, dtype=images.dtype, device=images.device)
    ink = images.amax(1, keepdim=True) > 0
    moved = forth[..., 0, None, None] * x + forth[..., 1, None, None] * y[:, None]
    beyond = reach * forth.abs().sum(-1)
    low = torch.where(ink, moved, math.inf).amin((-2, -1)) - beyond
    high = torch.where(ink, moved, -math.inf).amax((-2, -1)) + beyond
    blank = ~ink.flatten(1).any(1, keepdim=True)
    return torch.where(blank, 0, low), torch.where(blank, 0, high)


UPRIGHT = Augmentation(32)
"""Digits as they are, padded to 32x32."""

ROTATED = Augmentation(32, rotation=180.0)
"""MNIST turned by any angle on the fly, for training and test."""

TRANSLATED = Augmentation(40, placement="frame")
"""Padded and translated (not turned) MNIST, the training set for affNIST (Sabour et al. 2017; Section 6)."""
