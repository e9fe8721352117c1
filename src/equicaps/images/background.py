"""Bright on dark or dark on bright: what images show, judged by their borders, and how a model comes to see its own."""

from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from equicaps.images.resizing import as_floats, rows_at_once
from equicaps.models.sizes import background

Background = Literal["dark", "bright"]
BACKGROUNDS: dict[Background, str] = {"dark": "bright on dark background", "bright": "dark on bright background"}
"""The backgrounds in words."""
DARK, BRIGHT = 1 / 3, 2 / 3
"""A background below the first is dark, above the second bright; in between it is neither."""
DARK_OBJECT = 0.4
"""What is darker than this, on average, is laid on white where it is transparent."""


def brightness(images: Shaped[Tensor, "n channels height width"]) -> Float[Tensor, " n"]:
    """The brightness of each image's background: the middle one of its channels."""
    return as_floats(background(images)).flatten(1).median(-1).values


def background_of(brightnesses: Float[Tensor, " n"]) -> Background | None:
    """The background that all images of a set have, so that none of them is inverted; None if they differ."""
    if (brightnesses < DARK).all():
        return "dark"
    return "bright" if (brightnesses > BRIGHT).all() else None


def is_opposite(images: Shaped[Tensor, "n channels height width"], known: Background | None) -> Bool[Tensor, " n"]:
    """Whether each image has the opposite of the background that a model knows; never if it knows several."""
    found = brightness(images)
    if known is None:
        return torch.zeros_like(found, dtype=torch.bool)
    return found > BRIGHT if known == "dark" else found < DARK


def as_known(
    images: Shaped[Tensor, "n channels height width"], known: Background | None
) -> tuple[Shaped[Tensor, "n channels height width"], Bool[Tensor, " n"]]:
    """Exchange bright and dark in images with the opposite of the background that a model knows; and say in which."""
    opposite = is_opposite(images, known)
    white = 1 if images.is_floating_point() else torch.iinfo(images.dtype).max
    return torch.where(opposite[:, None, None, None], white - images, images) if opposite.any() else images, opposite


def on_black_or_white(images: Shaped[Tensor, "n 4 height width"]) -> Shaped[Tensor, "n 3 height width"]:
    """Lay transparent images on black or, if what they show is dark, on white: a background that differs from them.

    Bytes stay bytes; they are converted some rows at a time, because a photograph of floats would fill the memory.
    """
    strips = images.split(rows_at_once(images.shape[:2].numel() * images.shape[-1]), -2)
    scale = 255 if images.dtype == torch.uint8 else 1
    weight, shown = images.new_zeros(2, len(images), dtype=torch.float64)
    for strip in strips:
        values = strip.float() if scale == 255 else strip.double()  # sums are the same in any order
        weight += values[:, 3].sum((1, 2), dtype=torch.float64)
        shown += (values[:, :3].sum(1) * values[:, 3]).sum((1, 2), dtype=torch.float64) / 3
    dark = (shown / scale < DARK_OBJECT * weight) & (weight > 0)
    ground = dark.to(images)[:, None, None, None] * scale
    if scale == 1:
        return images[:, :3] * images[:, 3:] + ground * (1 - images[:, 3:])
    opaque, top = torch.empty_like(images[:, :3]), 0
    for strip in strips:
        share = strip[:, 3:].float() / 255
        opaque[:, :, top : top + strip.shape[-2]] = (strip[:, :3] * share + ground * (1 - share)).round_()
        top += strip.shape[-2]
    return opaque
