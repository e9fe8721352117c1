"""The group of translations."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_count
from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import length, weighted_mean


class Translation(Group):
    r"""The translations :math:`(\mathbb{R}^n, +)` (Appendix B).

    Both conditions of Theorem 1 hold for all weights with a non-zero sum. The zero vector is both the neutral element
    and the undefined pose: only the activation distinguishes the two.
    """

    def __init__(self, n: int) -> None:
        check_count("Translation", "n", n)
        self.dim = self.algebra_dim = self.point_dim = n

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape n"]:
        """The zero vector."""
        return torch.zeros(*shape, self.dim, dtype=dtype, device=device)

    def compose(self, g: Float[Tensor, "*#batch n"], h: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch n"]:
        """The sum."""
        return g + h

    def inverse(self, g: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """The negative."""
        return -g

    def act(self, g: Float[Tensor, "*#batch n"], points: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch n"]:
        """Translate points."""
        return g + points

    def mean(
        self, elements: Float[Tensor, "*#batch k n"], weights: Float[Tensor, "*#batch k"]
    ) -> Float[Tensor, "*batch n"]:
        """The weighted mean."""
        return weighted_mean(elements, weights)

    def distance(self, g: Float[Tensor, "*#batch n"], h: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch"]:
        """‖p - q‖, the Euclidean distance."""
        return length(g - h)

    def exp(self, algebra: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """The vector itself."""
        return algebra

    def log(self, g: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """The vector itself."""
        return g

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape n"]:
        """Standard normal vectors."""
        return torch.randn(*shape, self.dim, generator=generator, dtype=dtype, device=device)

    def contains(self, g: Float[Tensor, "*batch n"]) -> Bool[Tensor, "*batch"]:
        """Whether all coordinates are finite."""
        return g.isfinite().all(-1)

    def __repr__(self) -> str:
        return f"R^{self.dim}"
