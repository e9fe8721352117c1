"""Clouds with different numbers of points, in one batch."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class PaddedClouds(NamedTuple):
    """Clouds that are padded to a common number of points, as networks for points take them."""

    points: Float[Tensor, "n points 3"]
    """Zeros are the padding."""
    weights: Float[Tensor, "n points"]
    """1 for points, 0 for padding."""

    @classmethod
    def of(cls, clouds: Sequence[Float[Tensor, "_ 3"]]) -> "PaddedClouds":
        """Pad clouds to the number of points of the largest, at least one."""
        longest = max(1, *map(len, clouds)) if clouds else 1
        points, weights = torch.zeros(len(clouds), longest, 3), torch.zeros(len(clouds), longest)
        for number, cloud in enumerate(clouds):
            points[number, : len(cloud)], weights[number, : len(cloud)] = cloud, 1.0
        return cls(points, weights)

    def split(self, size: int) -> Iterator["PaddedClouds"]:
        """At most ``size`` clouds after another."""
        return map(PaddedClouds, self.points.split(size), self.weights.split(size))
