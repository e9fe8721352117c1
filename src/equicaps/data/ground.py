"""Whether things are bright on a dark ground or dark on a bright one: the border of an image shows mostly ground."""

from collections.abc import Sequence
from statistics import median
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Ground = Literal["dark", "bright"]
GROUNDS: dict[Ground, str] = {"dark": "bright on dark ground", "bright": "dark on bright ground"}
"""In words."""
DARK, BRIGHT = 1 / 3, 2 / 3
"""Borders of a set that are darker, or brighter, are ground; in between nothing is claimed."""


def border_brightness(image: Float[Tensor, "channels height width"]) -> float:
    """The mean of the outermost pixels."""
    sides = (image[:, 0], image[:, -1], image[:, 1:-1, 0], image[:, 1:-1, -1])
    return torch.cat([side.flatten() for side in sides]).mean().item()


def ground_of(borders: Sequence[float]) -> Ground | None:
    """The ground of a set of images by the median brightness of their borders; None if it is neither."""
    middle = median(borders)
    return "dark" if middle < DARK else "bright" if middle > BRIGHT else None


def is_opposite(ground: Ground | None, border: float) -> bool | None:
    """Whether an image with this border has another ground than was expected; None if nothing was."""
    return None if ground is None else (border > 0.5) == (ground == "dark")
