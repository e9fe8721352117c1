"""Random views of a batch, drawn on the fly, as in the paper's protocols."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_choice
from equicaps.images.warp import Interpolation, warp
from equicaps.models.sizes import background

Placement = Literal["centre", "frame", "ink"]


class Views(NamedTuple):
    """Augmented images, and the counter-clockwise rotation of each."""

    images: Float[Tensor, "n channels size size"]
    degrees: Float[Tensor, " n"]


@dataclass(frozen=True)
class Augmentation:
    """Scales, shears, rotates and places each image at random on its own background, with a single interpolation.

    The result depends only on the batch and the generator's state: the same seed gives the same views.

    Attributes:
        size: the side of the views.
        rotation: the largest angle in degrees in either direction, drawn uniformly; 180 for any angle.
        shear: the largest shear in either direction, drawn uniformly: x grows by up to this much per unit of y.
        scale: the smallest and the largest factor, drawn uniformly for each axis.
        shift: the largest shift of a centred image in pixels, in either direction, drawn uniformly for each axis.
        placement: ``"centre"``; ``"frame"``, at any whole pixel such that the whole image stays inside (translated
            MNIST: 28x28 in 40x40); ``"ink"``, anywhere such that everything that is not background stays inside after
            the other changes (affNIST). Ink that does not fit is centred.
        interpolation: how values between pixels are computed; bicubic values are clipped to [0, 1]. ``"mixed"``:
            bilinear or bicubic at random for each view, for networks that should not depend on it.
    """

    size: int
    _: KW_ONLY
    rotation: float = 0.0
    shear: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0
    placement: Placement = "centre"
    interpolation: Interpolation | Literal["mixed"] = "bilinear"

    def __post_init__(self) -> None:
        check_choice("interpolation", self.interpolation, (*get_args(Interpolation), "mixed"))
        if self.size < 1:
            raise ValueError(f"Augmentation: size must be at least 1 pixel, but is {self.size}.")
        if not 0 <= self.rotation <= 180:
            raise ValueError(f"Augmentation: rotation must be 0 to 180 degrees (either way), but is {self.rotation}.")
        if not 0 <= self.shear < math.inf:
            raise ValueError(f"Augmentation: shear must be 0 or more (either way), but is {self.shear}.")
        if not 0 <= self.shift < math.inf:
            raise ValueError(f"Augmentation: shift must be 0 or more pixels (either way), but is {self.shift}.")
        if not 0 < self.scale[0] <= self.scale[1] < math.inf:
            raise ValueError(f"Augmentation: scale must be (smallest, largest), both above 0, but is {self.scale}.")

    def __call__(
        self, images: Float[Tensor, "n channels height width"], generator: torch.Generator | None = None
    ) -> Views:
        """Draw one view of each image.

        Args:
            images: floats in [0, 1], of any size.
            generator: the only source of randomness; by default torch's global generator.
        """
        device = "cpu" if generator is None else generator.device
        # Always six numbers for each image, so that two augmentations draw the same angles from the same seed.
        drawn = torch.rand(6, len(images), generator=generator, device=device).to(images)
        degrees = (2 * drawn[0] - 1) * self.rotation
        shear = (2 * drawn[1] - 1) * self.shear
        scale = self.scale[0] + drawn[2:4] * (self.scale[1] - self.scale[0])
        forth, back = _linear_map(degrees, shear, scale)
        shift = self._shift(images, forth, drawn[4:].T)
        if self.interpolation != "mixed":
            return Views(warp(images, back, shift, self.size, self.interpolation), degrees)
        views = images.new_empty(len(images), images.shape[1], self.size, self.size)
        smooth = torch.rand(len(images), generator=generator, device=device).to(images) < 0.5
        choices: tuple[tuple[Tensor, Interpolation], ...] = ((smooth, "bilinear"), (~smooth, "bicubic"))
        for some, interpolation in choices:
            if some.any():
                views[some] = warp(images[some], back[some], shift[some], self.size, interpolation)
        return Views(views, degrees)

    def _shift(self, images: Tensor, forth: Tensor, drawn: Tensor) -> Tensor:
        if self.placement == "frame":
            room = self.size - drawn.new_tensor([images.shape[-1], images.shape[-2]])
            if room.min() < 0:
                raise ValueError(
                    f"Augmentation: placement 'frame' needs images of at most {self.size}x{self.size}, but they have "
                    f"{images.shape[-2]}x{images.shape[-1]}; choose a larger size or placement 'centre'."
                )
            return torch.minimum((drawn * (room + 1)).floor(), room) - room / 2
        if self.placement == "ink":
            low, high = _extent(images, forth, 1 if self.interpolation == "bilinear" else 2)
            # The ink, with the reach of the interpolation, must not touch the first pixel beyond the frame.
            low, high = -(self.size + 1) / 2 - low, (self.size + 1) / 2 - high
            return low + torch.where(high > low, drawn, 0.5) * (high - low)
        return (2 * drawn - 1) * self.shift


def _linear_map(degrees: Tensor, shear: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The map x -> rotate(shear(scale x)) of each image, with y up, and its inverse."""
    angle = torch.deg2rad(degrees)
    cosine, sine, (x, y) = torch.cos(angle), torch.sin(angle), scale
    forth = (x * cosine, y * (shear * cosine - sine), x * sine, y * (shear * sine + cosine))
    back = ((cosine + shear * sine) / x, (sine - shear * cosine) / x, -sine / y, cosine / y)
    return torch.stack(forth, -1).unflatten(-1, (2, 2)), torch.stack(back, -1).unflatten(-1, (2, 2))


def _extent(images: Tensor, forth: Tensor, reach: int) -> tuple[Tensor, Tensor]:
    """The bounding box of the ink after the linear map, enlarged by the reach of the interpolation."""
    height, width = images.shape[-2:]
    x = torch.arange(width, dtype=images.dtype, device=images.device) - (width - 1) / 2
    y = (height - 1) / 2 - torch.arange(height, dtype=images.dtype, device=images.device)
    ink = (images != background(images)).any(1, keepdim=True)
    moved = forth[..., 0, None, None] * x + forth[..., 1, None, None] * y[:, None]
    beyond = reach * forth.abs().sum(-1)
    low = torch.where(ink, moved, math.inf).amin((-2, -1)) - beyond
    high = torch.where(ink, moved, -math.inf).amax((-2, -1)) + beyond
    blank = ~ink.flatten(1).any(1, keepdim=True)
    return torch.where(blank, 0, low), torch.where(blank, 0, high)


UPRIGHT = Augmentation(32)
"""Digits left upright and padded to 32x32."""

ROTATED = Augmentation(32, rotation=180.0)
"""MNIST rotated by any angle on the fly, for training and testing."""

TRANSLATED = Augmentation(40, placement="frame")
"""MNIST padded and translated but not rotated: the training set for affNIST (Sabour et al. 2017; Section 6)."""
