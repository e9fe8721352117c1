"""Rigid motions of the plane."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.groups.so2 import SO2
from equicaps.groups.special_euclidean import SpecialEuclidean


class SE2(SpecialEuclidean):
    r"""Rigid motions of the plane as :math:`(\cos\theta, \sin\theta, t_x, t_y)`.

    Both conditions of Theorem 1 hold wherever the rotation mean is defined. An algebra vector holds the angle, then the
    velocity.
    """

    dim, algebra_dim, point_dim = 4, 3, 2
    _sizes = (2, 2)
    rotations = SO2()

    def exp(self, algebra: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 4"]:
        r"""(exp θ, V(θ) u) with :math:`V = \mathrm{sinc}(θ/2) \exp(θ/2)`: the chord of the arc."""
        angle, velocity = algebra.split((1, 2), dim=-1)
        chord = self.rotations.act(self.rotations.exp(angle / 2), velocity) * _sinc(angle / 2)
        return torch.cat((self.rotations.exp(angle), chord), dim=-1)

    def log(self, g: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 3"]:
        """The angle in (-π, π] and the velocity V(θ)⁻¹ t."""
        rotation, translation = g.split(self._sizes, dim=-1)
        angle = self.rotations.log(rotation)
        velocity = self.rotations.act(self.rotations.exp(-angle / 2), translation) / _sinc(angle / 2)
        return torch.cat((angle, velocity), dim=-1)

    def __repr__(self) -> str:
        return "SE(2)" if self.translation_weight == 1 else f"SE(2)[λ={self.translation_weight:g}]"


def _sinc(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    return torch.sinc(x / torch.pi)
