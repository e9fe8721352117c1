"""The sparse group convolution of Section 4 on neighbourhoods of a cloud."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.functional.point_routing import Neighbours, take
from equicaps.numerics import OPPOSED_WEIGHTS, full_precision, noise_floor, safe_reciprocal

RINGS = (0.0, 0.5, 1.0)
"""The square distances, in radii, at which the radial bumps of a kernel are centred."""
SHARPNESS = 8.0
"""Bumps are exp(-8 (s - s₀)²): they fall to 0.14 at their neighbour's centre."""
MONOMIALS = 10
"""The number of monomials of degree 0, 1 and 2 in three coordinates."""


@full_precision
def point_convolution(
    near: Neighbours,
    features: Float[Tensor, "batch n c"],
    poses: Float[Tensor, "batch i m 9"],
    weight: Float[Tensor, "m q c r p"],
) -> Float[Tensor, "batch i m q"]:
    r"""The group convolution at the poses of capsules, for smooth kernels :math:`ψ` (Theorem 3).

    .. math::
        \mathrm{out}_{jq}(x) = \frac{1}{\sum_k w_k} \sum_k w_k \sum_c f_c(x + u_k)\, ψ_{jqc}(p_j(x)^{-1} u_k), \qquad
        ψ(z) = \sum_{r, p} W_{rp}\, e^{-8 (|z|^2 - s_r)^2}\, z^p

    The sum over the weighted neighbours stands for the integral; :math:`z^p` are the ten monomials up to degree 2.
    ``point_convolution`` of a rotated cloud at poses that rotate with it does not change: exact for every rotation, up
    to rounding. At an undefined pose z is 0.

    Args:
        near: neighbourhoods with offsets u and weights w.
        features: :math:`f_c` at the points of the cloud.
        poses: :math:`p_j`, SO(3) matrices row by row.
        weight: W: q kernels for each capsule, r radial bumps and p monomials.
    """
    squares = near.offsets.square().sum(-1, keepdim=True)
    bumps = torch.exp(-SHARPNESS * (squares - squares.new_tensor(RINGS)).square())  # (b, i, k, r)
    total = near.weights.sum(-1, keepdim=True)
    shares = near.weights * safe_reciprocal(total, noise_floor(near.weights, OPPOSED_WEIGHTS))
    signal = take(features, near.indices).unsqueeze(-1) * (shares.unsqueeze(-1) * bumps).unsqueeze(-2)
    aligned = near.offsets.unsqueeze(2) @ poses.unflatten(-1, (3, 3))  # (b, i, m, k, 3): rows are uᵀp = (p⁻¹u)ᵀ
    moments = monomials(aligned).mT @ signal.flatten(3).unsqueeze(2)  # (b, i, m, p, c·r)
    return torch.einsum("bimpx,mqxp->bimq", moments, weight.flatten(2, 3))


def monomials(z: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 10"]:
    """1; x, y, z; x², y², z²; yz, zx, xy."""
    return torch.cat((torch.ones_like(z[..., :1]), z, z.square(), z.roll(-1, -1) * z.roll(-2, -1)), dim=-1)
