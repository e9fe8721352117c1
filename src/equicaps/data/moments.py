"""The axis of a source from the moments of its intensity: an angle without labels and without a network."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class PrincipalAxis(NamedTuple):
    """Of each image; NaN where there is nothing to see.

    Attributes:
        degrees: counter-clockwise from the right (x right, y up), in [0, 180): an axis has no head.
        roundness: minor over major axis, from 0 for a line to 1 for a disc, whose axis means nothing.
    """

    degrees: Float[Tensor, " n"]
    roundness: Float[Tensor, " n"]


def principal_axis(intensities: Float[Tensor, "n height width"], threshold: float = 0.05) -> PrincipalAxis:
    r"""The eigenvector of the covariance of intensity, :math:`\theta = \frac12 \arctan(2 c_{xy}, c_{xx} - c_{yy})`.

    Turns with the image: exactly under quarter turns, up to interpolation and the pixels' shape in between.

    Args:
        intensities: not negative.
        threshold: share of the image's maximum below which a pixel does not count.
    """
    values = intensities.double()
    weights = torch.where(values >= threshold * values.amax((-2, -1), keepdim=True), values, 0.0)
    weights = weights / weights.sum((-2, -1), keepdim=True)  # NaN for a black image
    height, width = values.shape[-2:]
    x = torch.arange(width, dtype=values.dtype) - (width - 1) / 2
    y = ((height - 1) / 2 - torch.arange(height, dtype=values.dtype)).unsqueeze(-1)

    def mean(of: Tensor) -> Tensor:
        return (weights * of).sum((-2, -1))

    xx, yy, xy = mean(x * x) - mean(x) ** 2, mean(y * y) - mean(y) ** 2, mean(x * y) - mean(x) * mean(y)
    spread = torch.hypot(2 * xy, xx - yy)
    minor, major = ((xx + yy - spread) / 2).clamp(min=0), (xx + yy + spread) / 2
    degrees = (torch.rad2deg(torch.atan2(2 * xy, xx - yy)) / 2 % 180).to(intensities.dtype) % 180  # may round to 180
    roundness = torch.where(major > 0, (minor / major).sqrt(), torch.where(major == 0, 1.0, torch.nan))
    return PrincipalAxis(degrees, roundness.to(intensities.dtype))


def axis_difference(degrees: Float[Tensor, " n"], others: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """From one axis to the other in degrees, in [-90, 90): opposite directions are the same axis."""
    return (degrees - others + 90) % 180 - 90
