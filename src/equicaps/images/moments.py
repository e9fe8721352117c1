"""The axis and the direction of a source from the moments of its intensity: angles without labels or a network.

Angles are in degrees, counter-clockwise from the right (x right, y up).
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class PrincipalAxis(NamedTuple):
    """The principal axis of each image; NaN where the image is black.

    Attributes:
        degrees: the angle of the axis, in [0, 180) because an axis has no direction.
        roundness: the ratio of the minor to the major axis, from 0 for a line to 1 for a disc, whose axis has no
            meaning.
    """

    degrees: Float[Tensor, " n"]
    roundness: Float[Tensor, " n"]


class Centroid(NamedTuple):
    """The centroid of each image's intensity, seen from the image's centre; NaN where the image is black.

    Attributes:
        degrees: the direction, in [0, 360).
        distance: the distance in pixels; if it is 0, the direction has no meaning.
    """

    degrees: Float[Tensor, " n"]
    distance: Float[Tensor, " n"]


def principal_axis(intensities: Float[Tensor, "n height width"], threshold: float = 0.05) -> PrincipalAxis:
    r"""The major axis of the intensity's covariance, :math:`\theta = \frac12 \arctan(2 c_{xy}, c_{xx} - c_{yy})`.

    The axis rotates with the image: exactly under quarter turns, up to interpolation and the pixels' shape in between.

    Args:
        intensities: images without negative values.
        threshold: the share of the image's maximum below which a pixel does not count.
    """
    x, y, xx, yy, xy = _moments(intensities, threshold)
    xx, yy, xy = xx - x * x, yy - y * y, xy - x * y
    spread = torch.hypot(2 * xy, xx - yy)
    minor, major = ((xx + yy - spread) / 2).clamp(min=0), (xx + yy + spread) / 2
    roundness = torch.where(major > 0, (minor / major).sqrt(), torch.where(major == 0, 1.0, torch.nan))
    return PrincipalAxis(_degrees(2 * xy, xx - yy, 180, intensities.dtype), roundness.to(intensities.dtype))


def centroid(intensities: Float[Tensor, "n height width"], threshold: float = 0.05) -> Centroid:
    """The mean position of the intensity; for arguments and exactness see :func:`principal_axis`."""
    x, y, *_ = _moments(intensities, threshold)
    return Centroid(_degrees(y, x, 360, intensities.dtype), torch.hypot(x, y).to(intensities.dtype))


def angle_difference(
    degrees: Float[Tensor, "*#n"], others: Float[Tensor, "*#n"], period: int | Float[Tensor, "*#n"] = 360
) -> Float[Tensor, "*n"]:
    """The first angle minus the second, in [-period / 2, period / 2); axes have a period of 180."""
    return (degrees - others + period / 2) % period - period / 2


def angle_distance(
    degrees: Float[Tensor, "*#n"], others: Float[Tensor, "*#n"], period: Float[Tensor, "*#n"] | None = None
) -> Float[Tensor, "*n"]:
    """How far two angles are apart, in [0, period / 2]; NaN for a period of 0, modulo which there are no angles.

    As in :attr:`Prediction.period <equicaps.inference.Prediction.period>`, None stands for 360 everywhere.
    """
    return angle_difference(degrees, others, 360 if period is None else period).abs()


def _moments(intensities: Tensor, threshold: float) -> tuple[Tensor, ...]:
    """The intensity-weighted means of x, y, x², y² and xy."""
    values = intensities.double()
    weights = torch.where(values >= threshold * values.amax((-2, -1), keepdim=True), values, 0.0)
    weights = weights / weights.sum((-2, -1), keepdim=True)  # NaN for a black image
    height, width = values.shape[-2:]
    x = torch.arange(width, dtype=values.dtype) - (width - 1) / 2
    y = ((height - 1) / 2 - torch.arange(height, dtype=values.dtype)).unsqueeze(-1)
    return tuple((weights * of).sum((-2, -1)) for of in (x, y, x * x, y * y, x * y))


def _degrees(sine: Tensor, cosine: Tensor, period: int, dtype: torch.dtype) -> Tensor:
    degrees = torch.rad2deg(torch.atan2(sine, cosine)) * period / 360 % period
    return degrees.to(dtype) % period  # rounding may have given the period itself
