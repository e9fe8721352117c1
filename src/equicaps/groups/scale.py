"""The group of scalings."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_count
from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import evidence, is_nothing, weighted_mean


class Scale(Group):
    r"""The positive reals under multiplication, acting on :math:`\mathbb{R}^n` by scaling.

    Both conditions of Theorem 1 hold for all weights with a non-zero sum, because the logarithm maps this group to
    :class:`Translation`. The undefined pose is 0, which is not an element, and it does not count in a mean.
    """

    dim, algebra_dim = 1, 1

    def __init__(self, n: int = 1) -> None:
        check_count("Scale", "n", n)
        self.point_dim = n

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape 1"]:
        """The number 1."""
        return torch.ones(*shape, 1, dtype=dtype, device=device)

    def compose(self, g: Float[Tensor, "*#batch 1"], h: Float[Tensor, "*#batch 1"]) -> Float[Tensor, "*batch 1"]:
        """The product."""
        return g * h

    def inverse(self, g: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 1"]:
        """The reciprocal; 0 for the undefined pose."""
        return self._present(g) / self._defined(g)

    def act(self, g: Float[Tensor, "*#batch 1"], points: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch n"]:
        """Scale points."""
        return g * points

    def mean(
        self, elements: Float[Tensor, "*#batch k 1"], weights: Float[Tensor, "*#batch k"]
    ) -> Float[Tensor, "*batch 1"]:
        """The weighted geometric mean."""
        present = weights * self._present(elements).squeeze(-1)
        return torch.exp(weighted_mean(self.log(elements), present)) * evidence(present).unsqueeze(-1)

    def distance(self, g: Float[Tensor, "*#batch 1"], h: Float[Tensor, "*#batch 1"]) -> Float[Tensor, "*batch"]:
        """The absolute value of log(p / q)."""
        return (self.log(g) - self.log(h)).abs().squeeze(-1)

    def exp(self, algebra: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 1"]:
        """The exponential function."""
        return torch.exp(algebra)

    def log(self, g: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 1"]:
        """The natural logarithm; 0 for the undefined pose."""
        return torch.log(self._defined(g))

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape 1"]:
        """Log-normal numbers."""
        return torch.exp(torch.randn(*shape, 1, generator=generator, dtype=dtype, device=device) / 2)

    def contains(self, g: Float[Tensor, "*batch 1"]) -> Bool[Tensor, "*batch"]:
        """Whether g is positive and finite, and large enough for its inverse to be so."""
        return ((g > 0) & ~is_nothing(g) & g.isfinite()).squeeze(-1)

    def presence(self, g: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch"]:
        """1 except at 0, to which a mean fades as its evidence vanishes."""
        return self._present(g).squeeze(-1)

    def _present(self, g: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 1"]:
        return (~is_nothing(g)).to(g.dtype)

    def _defined(self, g: Float[Tensor, "*batch 1"]) -> Float[Tensor, "*batch 1"]:
        return torch.where(is_nothing(g), torch.ones_like(g), g)

    def __repr__(self) -> str:
        return "R+" if self.point_dim == 1 else f"R+ on R^{self.point_dim}"
