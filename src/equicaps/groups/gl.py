"""The general linear group: invertible matrices."""

import math

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_count
from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import length, safe_inverse, weighted_mean

LARGEST = 8
_SQUARE_ROOTS = 4
_ROOT_ITERATIONS = 10
_QUADRATURE = [((x + 1) / 2, w / 2) for x, w in np.transpose(np.polynomial.legendre.leggauss(8)).tolist()]


class GL(Group):
    r"""The general linear group :math:`GL(n, \mathbb{R})` as flattened n x n matrices (Appendix B).

    M is left-equivariant but *can leave the group*: the mean of I and -I is the zero matrix. Theorem 1 then does not
    apply, hence ``mean_is_closed = False``. A singular mean is an undefined pose: its ``presence`` is 0, so routing
    gives it activation 0, and its ``inverse`` is the zero matrix, never inf. δ is left-invariant, not symmetric.
    """

    mean_is_closed = False
    distance_is_symmetric = False

    def __init__(self, n: int) -> None:
        check_count("GL", "n", n)
        if n > LARGEST:
            raise ValueError(
                f"GL: `n` must be at most {LARGEST}, where inverses are still exact in float32, but is {n}."
            )
        self.point_dim = n
        self.dim = self.algebra_dim = n * n

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape d"]:
        """The unit matrix."""
        return torch.eye(self.point_dim, dtype=dtype, device=device).flatten().expand(*shape, self.dim)

    def compose(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """The matrix product."""
        return (self._matrix(g) @ self._matrix(h)).flatten(-2)

    def inverse(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The inverse matrix, which falls to zero as g becomes singular."""
        return safe_inverse(self._matrix(g))[0].flatten(-2)

    def act(self, g: Float[Tensor, "*#batch d"], points: Float[Tensor, "*#batch n"]) -> Float[Tensor, "*batch n"]:
        """The linear map g x."""
        return (self._matrix(g) @ points.unsqueeze(-1)).squeeze(-1)

    def mean(
        self, elements: Float[Tensor, "*#batch k d"], weights: Float[Tensor, "*#batch k"]
    ) -> Float[Tensor, "*batch d"]:
        """The weighted mean of the matrices, which may be singular."""
        return weighted_mean(elements, weights)

    def distance(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch"]:
        """‖p⁻¹q - I‖, the Frobenius norm of the relative deformation."""
        relative = self.compose(self.inverse(g), h)
        return length(relative - self.identity(dtype=g.dtype, device=g.device))

    def exp(self, algebra: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The matrix exponential, which reaches only matrices with positive determinant."""
        return torch.linalg.matrix_exp(self._matrix(algebra)).flatten(-2)

    def log(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        r"""The principal matrix logarithm by inverse scaling and squaring, for matrices not too far from I.

        :math:`\log A = 2^s \log A^{1/2^s}`, with square roots by the Denman-Beavers iteration and the logarithm near I
        by Gauss-Legendre quadrature of :math:`\int_0^1 (A - I)(I + t(A - I))^{-1} dt`, its Padé approximant. A matrix
        without a real logarithm gives NaN or a matrix whose exponential is not g: check ``exp(log(g))``.
        """
        identity = torch.eye(self.point_dim, dtype=g.dtype, device=g.device)
        root = self._matrix(g)
        for _ in range(_SQUARE_ROOTS):
            root = _square_root(root, identity)
        offset = root - identity
        terms = [w * torch.linalg.solve_ex(identity + t * offset, offset).result for t, w in _QUADRATURE]
        return (2**_SQUARE_ROOTS * sum(terms[1:], terms[0])).flatten(-2)

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape d"]:
        """Exponentials of small Gaussian matrices: well conditioned, with positive determinant."""
        algebra = torch.randn(*shape, self.dim, generator=generator, dtype=dtype, device=device)
        return self.exp(algebra / (2 * math.sqrt(self.point_dim)))

    def contains(self, g: Float[Tensor, "*batch d"]) -> Bool[Tensor, "*batch"]:
        """Whether g is invertible to working precision."""
        return self.presence(g) > 1 / 2

    def presence(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """1 for an invertible matrix, 0 for a singular one, smooth in between."""
        return safe_inverse(self._matrix(g))[1]

    def _matrix(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch n n"]:
        return g.unflatten(-1, (self.point_dim, self.point_dim))

    def __repr__(self) -> str:
        return f"GL({self.point_dim})"


def _square_root(matrix: Float[Tensor, "*batch n n"], identity: Float[Tensor, "n n"]) -> Float[Tensor, "*batch n n"]:
    """The principal square root by the product form of the Denman-Beavers iteration."""
    root, product = matrix, matrix
    for _ in range(_ROOT_ITERATIONS):
        inverse = safe_inverse(product)[0]
        root = root @ (identity + inverse) / 2
        product = (identity + (product + inverse) / 2) / 2
    return root
