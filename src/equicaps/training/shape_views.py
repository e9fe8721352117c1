"""Random views of shapes: points of their surfaces, drawn anew in every step."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_count
from equicaps.data.padding import PaddedClouds
from equicaps.data.shapes import POINTS, Surfaces


class CloudViews(NamedTuple):
    """Clouds, padded to one number of points, and the rotation of each, which is none."""

    points: Float[Tensor, "n points 3"]
    degrees: Float[Tensor, " n"]
    weights: Float[Tensor, "n points"]
    """1 for points, 0 for padding."""


@dataclass(frozen=True)
class ShapeViews:
    """Draws points of each surface and stretches it a little along its axes; a shape is never rotated.

    The result depends only on the surfaces and the generator's state: the same seed gives the same views.

    Attributes:
        points: how many of each surface; a cloud that has no more is taken as it is, as in predictions.
        stretch: the largest relative change of each of the three axes, drawn uniformly.
        jitter: the standard deviation of noise that is added to every coordinate.
    """

    points: int = POINTS
    stretch: float = 0.15
    jitter: float = 0.0

    def __post_init__(self) -> None:
        check_count("ShapeViews", "points", self.points)
        for name, most in (("stretch", 1.0), ("jitter", float("inf"))):
            if not 0 <= getattr(self, name) < most:
                raise ValueError(f"ShapeViews: `{name}` must be 0 or more, below {most}, but is {getattr(self, name)}.")

    def __call__(self, surfaces: Surfaces, generator: torch.Generator) -> CloudViews:
        """One view of each surface."""
        clouds, weights = PaddedClouds.of(surfaces.draw(self.points, generator))
        drawn = torch.rand(len(clouds), 1, 3, generator=generator)
        clouds = clouds * (1 + self.stretch * (2 * drawn - 1))
        if self.jitter:
            clouds = clouds + self.jitter * torch.randn(clouds.shape, generator=generator)
        return CloudViews(clouds, torch.zeros(len(clouds)), weights)
