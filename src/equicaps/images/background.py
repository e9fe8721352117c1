"""Whether images are bright on dark or dark on bright: the border of an image mostly shows its background."""

from collections.abc import Sequence
from statistics import median
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Background = Literal["dark", "bright"]
BACKGROUNDS: dict[Background, str] = {"dark": "bright on dark background", "bright": "dark on bright background"}
"""In words."""
DARK, BRIGHT = 1 / 3, 2 / 3
"""Borders of a set that are darker, or brighter, are background; in between nothing is claimed."""


def border_brightness(image: Float[Tensor, "channels height width"]) -> float:
    """The mean of the outermost pixels."""
    sides = (image[:, 0], image[:, -1], image[:, 1:-1, 0], image[:, 1:-1, -1])
    return torch.cat([side.flatten() for side in sides]).mean().item()


def background_of(borders: Sequence[float]) -> Background | None:
    """The background of a set of images by the median brightness of their borders; None if it is neither."""
    middle = median(borders)
    return "dark" if middle < DARK else "bright" if middle > BRIGHT else None


def is_opposite(background: Background | None, border: float) -> bool | None:
    """Whether an image with this border has another background than was expected; None if nothing was."""
    return None if background is None else (border > 0.5) == (background == "dark")
