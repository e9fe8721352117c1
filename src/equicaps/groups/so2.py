"""Planar rotations."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import (
    CANCELLATION,
    at_most_one,
    flatten_at_one,
    membership_tolerance,
    noise_floor,
    safe_normalize,
    weighted_sum,
)


class SO2(Group):
    r"""Planar rotations as unit vectors :math:`(\cos\theta, \sin\theta)`, counter-clockwise (Appendix B).

    Both conditions of Theorem 1 hold wherever the weighted sum is not zero; a zero sum is the undefined pose.

    Args:
        floor: the length of a weighted sum, relative to the sum of weights, at which its elements count as cancelling
            and the mean fades. The default is exact to 1e-4 under every rotation in float32, through several routing
            iterations.
    """

    dim, algebra_dim, point_dim = 2, 1, 2
    closed_form = "unit complex"

    def __init__(self, floor: float = CANCELLATION) -> None:
        if not 0 < floor < 1:
            raise ValueError(f"SO2: `floor` must lie between 0 and 1, but is {floor!r}.")
        self.floor = floor

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape 2"]:
        """The unit vector (1, 0)."""
        return torch.eye(1, 2, dtype=dtype, device=device).squeeze(0).expand(*shape, 2)

    def compose(self, g: Float[Tensor, "*#batch 2"], h: Float[Tensor, "*#batch 2"]) -> Float[Tensor, "*batch 2"]:
        """The complex product."""
        (a, b), (c, d) = g.unbind(-1), h.unbind(-1)
        return torch.stack((a * c - b * d, a * d + b * c), dim=-1)

    def inverse(self, g: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch 2"]:
        """The complex conjugate."""
        x, y = g.unbind(-1)
        return torch.stack((x, -y), dim=-1)

    def act(self, g: Float[Tensor, "*#batch 2"], points: Float[Tensor, "*#batch 2"]) -> Float[Tensor, "*batch 2"]:
        """Rotate points of the plane (x right, y up) counter-clockwise."""
        return self.compose(g, points)

    def mean(
        self, elements: Float[Tensor, "*#batch n 2"], weights: Float[Tensor, "*#batch n"]
    ) -> Float[Tensor, "*batch 2"]:
        """Renormalised weighted sum."""
        weights = at_most_one(weights)
        return safe_normalize(weighted_sum(elements, weights), noise_floor(weights, self.floor))

    def distance(self, g: Float[Tensor, "*#batch 2"], h: Float[Tensor, "*#batch 2"]) -> Float[Tensor, "*batch"]:
        """(1 - ⟨p, q⟩) / 2, the negative scalar product shifted to [0, 1]."""
        return (1 - (g * h).sum(-1)) / 2

    def exp(self, algebra: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 2"]:
        """The rotation by an angle in radians."""
        return torch.cat((torch.cos(algebra), torch.sin(algebra)), dim=-1)

    def log(self, g: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch 1"]:
        """The angle in (-π, π]; 0 for the undefined pose."""
        undefined = (g == 0).all(-1, keepdim=True)
        x, y = torch.where(undefined, self.identity(dtype=g.dtype, device=g.device), g).split(1, dim=-1)
        return torch.atan2(y, x)

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape 2"]:
        """Uniform rotations."""
        angle = 2 * math.pi * torch.rand(*shape, 1, generator=generator, dtype=dtype, device=device)
        return self.exp(angle)

    def contains(self, g: Float[Tensor, "*batch 2"]) -> Bool[Tensor, "*batch"]:
        """Whether g has unit length."""
        return (g.square().sum(-1) - 1).abs() <= membership_tolerance(g.dtype)

    def presence(self, g: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
        """The squared length, flattened at 1."""
        return flatten_at_one(g.square().sum(-1))

    def __repr__(self) -> str:
        return "SO(2)" if self.floor == CANCELLATION else f"SO(2), floor {self.floor:g}"
