"""Direct products of groups."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_positive
from equicaps.groups.base import Device, DType, Generator, Group


class Product(Group):
    r"""The direct product :math:`G \times H \times \dots` with concatenated coordinates (Section 2.2, Appendix C).

    All operations are factor-wise and δ is the (weighted) sum of the factors' distances, so both conditions of Theorem
    1 hold when they hold for every factor. The poses of the factors stay disentangled: use :class:`SE2` where a
    rotation should move a translation.

    Args:
        factors: two or more groups.
        weights: positive weights of the factors' distances in δ; by default 1.
    """

    def __init__(self, *factors: Group, weights: Sequence[float] | None = None) -> None:
        if len(factors) < 2 or not all(isinstance(factor, Group) for factor in factors):
            raise ValueError(f"Product: expected two or more groups, such as Product(SO2(), Scale()), got {factors!r}.")
        weights = (1.0,) * len(factors) if weights is None else tuple(weights)
        if len(weights) != len(factors):
            raise ValueError(
                f"Product: `weights` must be {len(factors)} numbers, one for each factor, but there are {len(weights)}."
            )
        for weight in weights:
            check_positive("Product", "weights", weight)
        self.factors = factors
        self.weights = weights
        self.dim = sum(factor.dim for factor in factors)
        self.algebra_dim = sum(factor.algebra_dim for factor in factors)
        self.point_dim = sum(factor.point_dim for factor in factors)
        self.mean_is_closed = all(factor.mean_is_closed for factor in factors)
        self.distance_is_symmetric = all(factor.distance_is_symmetric for factor in factors)

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape d"]:
        """The factors' neutral elements, concatenated."""
        return torch.cat([factor.identity(*shape, dtype=dtype, device=device) for factor in self.factors], dim=-1)

    def compose(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """Factor by factor."""
        parts = zip(self.factors, self.split(g), self.split(h), strict=True)
        return torch.cat([factor.compose(p, q) for factor, p, q in parts], dim=-1)

    def inverse(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """Factor by factor."""
        return torch.cat([factor.inverse(p) for factor, p in zip(self.factors, self.split(g), strict=True)], dim=-1)

    def act(self, g: Float[Tensor, "*#batch d"], points: Float[Tensor, "*#batch x"]) -> Float[Tensor, "*batch x"]:
        """Let each factor act on its own coordinates of the points."""
        coordinates = points.split([factor.point_dim for factor in self.factors], dim=-1)
        parts = zip(self.factors, self.split(g), coordinates, strict=True)
        return torch.cat([factor.act(p, x) for factor, p, x in parts], dim=-1)

    def mean(
        self, elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
    ) -> Float[Tensor, "*batch d"]:
        """The factors' means, concatenated."""
        parts = zip(self.factors, self.split(elements), strict=True)
        return torch.cat([factor.mean(p, weights) for factor, p in parts], dim=-1)

    def distance(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch"]:
        """The weighted sum of the factors' distances."""
        parts = zip(self.weights, self.factors, self.split(g), self.split(h), strict=True)
        return torch.stack([weight * factor.distance(p, q) for weight, factor, p, q in parts]).sum(0)

    def exp(self, algebra: Float[Tensor, "*batch a"]) -> Float[Tensor, "*batch d"]:
        """Factor by factor."""
        parts = algebra.split([factor.algebra_dim for factor in self.factors], dim=-1)
        return torch.cat([factor.exp(a) for factor, a in zip(self.factors, parts, strict=True)], dim=-1)

    def log(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch a"]:
        """Factor by factor."""
        return torch.cat([factor.log(p) for factor, p in zip(self.factors, self.split(g), strict=True)], dim=-1)

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape d"]:
        """Independent random elements of the factors."""
        parts = [factor.random(*shape, generator=generator, dtype=dtype, device=device) for factor in self.factors]
        return torch.cat(parts, dim=-1)

    def contains(self, g: Float[Tensor, "*batch d"]) -> Bool[Tensor, "*batch"]:
        """Whether every part is an element of its factor."""
        parts = zip(self.factors, self.split(g), strict=True)
        return torch.stack([factor.contains(p) for factor, p in parts]).all(0)

    def presence(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """The product of the factors' presences: a pose is undefined as soon as one of its parts is."""
        parts = zip(self.factors, self.split(g), strict=True)
        return torch.stack([factor.presence(p) for factor, p in parts]).prod(0)

    def fade(self, g: Float[Tensor, "*batch d"], presence: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Factor by factor."""
        parts = zip(self.factors, self.split(g), strict=True)
        return torch.cat([factor.fade(p, presence) for factor, p in parts], dim=-1)

    def split(self, g: Float[Tensor, "*batch d"]) -> tuple[Tensor, ...]:
        """The coordinates of each factor."""
        return g.split([factor.dim for factor in self.factors], dim=-1)

    def __repr__(self) -> str:
        return " x ".join(
            repr(factor) if weight == 1 else f"{weight:g}*{factor!r}"
            for factor, weight in zip(self.factors, self.weights, strict=True)
        )
