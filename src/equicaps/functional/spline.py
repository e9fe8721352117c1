"""Uniform B-splines, the continuous kernels of the paper's convolution (Section 6.1; Fey et al., 2018)."""

import torch
from jaxtyping import Float
from torch import Tensor

_TRUNCATED_POWERS = {1: ((1.0, 1.0),), 2: ((1.5, 0.5), (0.5, -1.5)), 3: ((2.0, 1 / 6), (1.0, -4 / 6))}
"""β_d(t) = Σ weight · max(edge - |t|, 0)^d as pairs (edge, weight): half of the knots, the rest by symmetry."""


def spline_basis(
    x: Float[Tensor, "*batch"], degree: int, size: int, radius: float = 1.0
) -> Float[Tensor, "*batch size"]:
    r"""All ``size`` basis functions of an open uniform B-spline over :math:`[-R, R]`, evaluated at x.

    .. math:: B_k(x) = β_d\big((\text{size} - d)\, x / 2R - k + (\text{size} - 1) / 2\big)

    with the cardinal B-spline :math:`β_d`, so knots are uniform and not repeated at the ends, as in the operator that
    the paper uses. The functions are non-negative, sum to 1 and are mirror images: ``B_k(-x) == B_{size-1-k}(x)``, to
    the bit. Positions outside the interval, by rounding or otherwise, count as its nearest end.

    Args:
        x: positions.
        degree: 1, 2 or 3; the kernel is continuous, once or twice differentiable.
        size: the number of control points, more than ``degree``.
        radius: R.
    """
    if degree not in _TRUNCATED_POWERS:
        raise ValueError(f"spline_basis: `degree` must be 1, 2 or 3, but is {degree!r}.")
    if size <= degree:
        raise ValueError(f"spline_basis: `size` must exceed the degree {degree}, but is {size!r}.")
    half = (size - degree) / 2
    centres = (torch.arange(size, dtype=x.dtype, device=x.device) - (size - 1) / 2).view(size, *(1,) * x.ndim)
    distance = ((x * (half / radius)).clamp(-half, half) - centres).abs()
    terms = [weight * torch.relu(edge - distance) ** degree for edge, weight in _TRUNCATED_POWERS[degree]]
    return sum(terms[1:], terms[0]).movedim(0, -1)
