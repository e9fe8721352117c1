"""What SE(2) and SE(3) share: the semidirect product of rotations and translations."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_positive
from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import length, weighted_mean


class SpecialEuclidean(Group):
    r"""Rigid motions :math:`x \mapsto Rx + t`: the coordinates of the rotation, followed by t. Abstract.

    The law is the semidirect product :math:`(R, t) \circ (R', t') = (RR', Rt' + t)`. M averages rotations and
    translations separately, and that *is* left-equivariant: :math:`\sum w (Rt_i + t) / \sum w = R \bar t + t`. So both
    conditions of Theorem 1 hold wherever the rotation mean is defined, which the paper only hopes for (Appendix C).
    """

    rotations: ClassVar[Group]
    _sizes: ClassVar[tuple[int, int]]

    def __init__(self, translation_weight: float = 1.0) -> None:
        check_positive(type(self).__name__, "translation_weight", translation_weight)
        self.translation_weight = translation_weight

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape d"]:
        """No rotation and no translation."""
        zero = torch.zeros(*shape, self._sizes[1], dtype=dtype, device=device)
        return torch.cat((self.rotations.identity(*shape, dtype=dtype, device=device), zero), dim=-1)

    def compose(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """The semidirect product: h is applied first, and g rotates its translation."""
        h_rotation, h_translation = h.split(self._sizes, dim=-1)
        rotation = self.rotations.compose(g.split(self._sizes, dim=-1)[0], h_rotation)
        return torch.cat((rotation, self.act(g, h_translation)), dim=-1)

    def inverse(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """(R⁻¹, -R⁻¹ t)."""
        rotation, translation = g.split(self._sizes, dim=-1)
        back = self.rotations.inverse(rotation)
        return torch.cat((back, -self.rotations.act(back, translation)), dim=-1)

    def act(self, g: Float[Tensor, "*#batch d"], points: Float[Tensor, "*#batch x"]) -> Float[Tensor, "*batch x"]:
        """Rotate points, then translate them."""
        rotation, translation = g.split(self._sizes, dim=-1)
        return self.rotations.act(rotation, points) + translation

    def mean(
        self, elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
    ) -> Float[Tensor, "*batch d"]:
        """The rotations' mean and the weighted mean of the translations."""
        rotations, translations = elements.split(self._sizes, dim=-1)
        rotation = self.rotations.mean(rotations, weights)
        return torch.cat((rotation, weighted_mean(translations, weights)), dim=-1)

    def distance(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch"]:
        """δ of the rotations plus λ‖t - t'‖."""
        (g_rotation, g_translation), (h_rotation, h_translation) = g.split(self._sizes, -1), h.split(self._sizes, -1)
        shift = length(g_translation - h_translation)
        return self.rotations.distance(g_rotation, h_rotation) + self.translation_weight * shift

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape d"]:
        """Uniform rotations with standard normal translations."""
        rotation = self.rotations.random(*shape, generator=generator, dtype=dtype, device=device)
        translation = torch.randn(*shape, self._sizes[1], generator=generator, dtype=dtype, device=device)
        return torch.cat((rotation, translation), dim=-1)

    def contains(self, g: Float[Tensor, "*batch d"]) -> Bool[Tensor, "*batch"]:
        """Whether the first part is a rotation and the translation is finite."""
        rotation, translation = g.split(self._sizes, dim=-1)
        return self.rotations.contains(rotation) & translation.isfinite().all(-1)

    def presence(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """The presence of the rotation."""
        return self.rotations.presence(g.split(self._sizes, dim=-1)[0])

    def fade(self, g: Float[Tensor, "*batch d"], presence: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Let only the rotation fade: shrinking the translation as well would break left-equivariance."""
        rotation, translation = g.split(self._sizes, dim=-1)
        return torch.cat((self.rotations.fade(rotation, presence), translation), dim=-1)
