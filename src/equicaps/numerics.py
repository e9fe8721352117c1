r"""Where floating point meets the mathematics: the only file with an epsilon in it.

Every division by something that may vanish *saturates*: with a length :math:`\ell` and the noise floor :math:`\varphi`
of the sum it came from, :math:`1/\ell` becomes :math:`\tanh(\ell/\varphi)/\ell`. Far above the floor that is
:math:`1/\ell` to the last bit (tanh is exactly 1 from about 20 on); at the floor it bends; below it stays at most
:math:`1/\varphi`. So the result is smooth and Lipschitz: votes that cancel give a pose that shrinks to the zero vector,
instead of rounding noise blown up to a direction.
"""

import torch
from jaxtyping import Float
from torch import Tensor

CANCELLATION = 1e-3
"""Resultant length, relative to the sum of weights, at which votes count as cancelling."""

NO_EVIDENCE = 1e-9
"""Sum of weights at which the bend begins; poses are undefined below ``CANCELLATION * NO_EVIDENCE``."""

SINGULAR = 1e-6
"""Relative determinant at which a matrix counts as singular; the rounding noise of float32 determinants."""

ZERO_MATRIX = 1e-12
"""Size at which a matrix counts as zero."""

SQUARINGS = 12
"""Squarings in :func:`dominant_projector`: eigenvalues closer than about 2**-12 of their size count as one."""


def membership_tolerance(dtype: torch.dtype) -> float:
    """How far an element may be off its group and still count as a member."""
    return float(torch.finfo(dtype).eps ** 0.5)


def law_tolerance(dtype: torch.dtype) -> float:
    """Relative error up to which an identity of group theory counts as holding in ``dtype``."""
    return float(torch.finfo(dtype).eps ** 0.6)


def noise_floor(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch 1"]:
    """Length below which a weighted sum of unit elements is indistinguishable from cancellation."""
    return CANCELLATION * (weights.abs().sum(-1, keepdim=True) + NO_EVIDENCE)


def safe_normalize(vector: Float[Tensor, "*batch d"], floor: Float[Tensor, "*#batch 1"]) -> Float[Tensor, "*batch d"]:
    r"""The saturating direction :math:`S \tanh(|S|/\varphi) / |S|`; unit far above the floor, zero at zero."""
    scaled = vector / floor
    return scaled * _tanhc(scaled.square().sum(-1, keepdim=True))


def safe_reciprocal(x: Float[Tensor, "*batch"], floor: float | Float[Tensor, "*#batch"]) -> Float[Tensor, "*batch"]:
    r"""The saturating inverse :math:`\tanh^2(x/\varphi) / x`: odd, equal to 1/x far above the floor, zero at zero."""
    z = x / floor
    return torch.tanh(z) * _tanhc(z.square()) / floor


def flatten_at_one(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """x (2 - x): still 0 at 0, and 1 at 1 with slope zero, so that the rounding of x near 1 does not pass."""
    return x * (2 - x)


def speaks(activations: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """1 for an active capsule, 0 for a silent one, whose pose is undefined; smooth between."""
    return torch.tanh(activations / (CANCELLATION * NO_EVIDENCE)).square()


def evidence(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """1 where the weights carry a weighted mean, 0 where they are all zero or cancel, smooth between."""
    return torch.tanh(weights.sum(-1) / noise_floor(weights).squeeze(-1)).square()


def weighted_sum(
    elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """The sum of ``elements`` over axis -2, each times its weight."""
    return torch.matmul(weights.unsqueeze(-2), elements).squeeze(-2)


def weighted_mean(
    elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """The affine combination of ``elements`` with the weights; the zero vector without evidence."""
    total = weights.sum(-1, keepdim=True)
    return weighted_sum(elements, weights) * safe_reciprocal(total, noise_floor(weights))


def dominant_projector(symmetric: Float[Tensor, "*batch k k"]) -> Float[Tensor, "*batch k k"]:
    r"""The projector onto the dominant eigenvector, by squaring: :math:`A^{2^s} / \mathrm{tr}\, A^{2^s}`.

    Products and quotients only: it exports, and its gradient is finite wherever eigenvalues meet (there the projector
    becomes the average over the eigenspace). Expects a positive semidefinite, non-zero matrix.
    """
    power = symmetric
    for _ in range(SQUARINGS):
        power = power @ power
        power = power / _trace(power)
    return power


def safe_inverse(
    matrix: Float[Tensor, "*batch n n"],
) -> tuple[Float[Tensor, "*batch n n"], Float[Tensor, "*batch"]]:
    r"""The inverse that falls to the zero matrix where the matrix is singular, and how regular the matrix is.

    :math:`A^{-1} = \mathrm{adj}(A) / \det A` with the saturating reciprocal, on A scaled to
    :math:`|A|_F = \sqrt n` so that singular is relative. Adjugate and determinant are polynomials in A
    (Faddeev-LeVerrier), so value and gradient are finite everywhere; one Newton step removes their rounding.
    """
    n = matrix.shape[-1]
    size = torch.sqrt(matrix.square().sum((-2, -1), keepdim=True) / n + ZERO_MATRIX**2)
    unit = matrix / size
    identity = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    adjugate, product = identity.expand_as(unit), unit
    for k in range(1, n):
        adjugate = product - (_trace(product) / k) * identity
        product = unit @ adjugate
    determinant = _trace(product) / n  # up to the sign that adjugate and determinant share
    inverse = adjugate * safe_reciprocal(determinant, SINGULAR)
    inverse = inverse @ (2 * identity - unit @ inverse)
    return inverse / size, torch.tanh(determinant / SINGULAR).square().squeeze((-2, -1))


def _tanhc(square: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """tanh(z) / z as a function of z²: smooth, 1 at zero."""
    z = torch.sqrt(square + torch.finfo(square.dtype).eps ** 2)
    return torch.tanh(z) / z


def _trace(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch 1 1"]:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
