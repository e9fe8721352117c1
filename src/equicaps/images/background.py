"""Whether images show bright objects on a dark background or the reverse, judged by their borders."""

from collections.abc import Sequence
from statistics import median
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Background = Literal["dark", "bright"]
BACKGROUNDS: dict[Background, str] = {"dark": "bright on dark background", "bright": "dark on bright background"}
"""The backgrounds in words."""
DARK, BRIGHT = 1 / 3, 2 / 3
"""A median border below the first is dark, above the second bright; in between the background is unknown."""


def border_brightness(image: Float[Tensor, "channels height width"]) -> float:
    """The mean brightness of the outermost pixels."""
    sides = (image[:, 0], image[:, -1], image[:, 1:-1, 0], image[:, 1:-1, -1])
    return torch.cat([side.flatten() for side in sides]).mean().item()


def background_of(borders: Sequence[float]) -> Background | None:
    """The background of a set of images, from the median brightness of their borders; None if it is unclear."""
    middle = median(borders)
    return "dark" if middle < DARK else "bright" if middle > BRIGHT else None


def is_opposite(background: Background | None, border: float) -> bool | None:
    """Whether an image with this border has the opposite of the expected background; None if none was expected."""
    return None if background is None else (border > 0.5) == (background == "dark")
