"""Bright on dark or dark on bright: what images show, judged by their borders, and how a model comes to see its own."""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps.models.sizes import background

Background = Literal["dark", "bright"]
BACKGROUNDS: dict[Background, str] = {"dark": "bright on dark background", "bright": "dark on bright background"}
"""The backgrounds in words."""
DARK, BRIGHT = 1 / 3, 2 / 3
"""A background below the first is dark, above the second bright; in between it is neither."""
DARK_OBJECT = 0.4
"""What is darker than this, on average, is laid on white where it is transparent."""


def brightness(images: Float[Tensor, "n channels height width"]) -> Float[Tensor, " n"]:
    """The brightness of each image's background: the middle one of its channels."""
    return background(images).flatten(1).median(-1).values


def background_of(brightnesses: Float[Tensor, " n"]) -> Background | None:
    """The background that all images of a set have, so that none of them is inverted; None if they differ."""
    if (brightnesses < DARK).all():
        return "dark"
    return "bright" if (brightnesses > BRIGHT).all() else None


def is_opposite(images: Float[Tensor, "n channels height width"], known: Background | None) -> Bool[Tensor, " n"]:
    """Whether each image has the opposite of the background that a model knows; never if it knows several."""
    found = brightness(images)
    if known is None:
        return torch.zeros_like(found, dtype=torch.bool)
    return found > BRIGHT if known == "dark" else found < DARK


def as_known(
    images: Float[Tensor, "n channels height width"], known: Background | None
) -> Float[Tensor, "n channels height width"]:
    """Exchange bright and dark in images with the opposite of the background that a model knows."""
    opposite = is_opposite(images, known)
    return torch.where(opposite[:, None, None, None], 1 - images, images) if opposite.any() else images


def on_black_or_white(
    colours: Float[Tensor, "n channels height width"], opacity: Float[Tensor, "n 1 height width"]
) -> Float[Tensor, "n channels height width"]:
    """Lay a transparent image on black or, if what it shows is dark, on white: a background that differs from it."""
    weight = opacity.double()
    shown = (colours.double().mean(1, keepdim=True) * weight).sum((1, 2, 3)) / weight.sum((1, 2, 3)).clamp(min=1e-9)
    ground = ((shown < DARK_OBJECT) & (weight.amax((1, 2, 3)) > 0)).to(colours)[:, None, None, None]
    return colours * opacity + ground * (1 - opacity)
