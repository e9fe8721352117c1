r"""Moments of neighbourhoods: what a first layer sees of a cloud, for every centre.

.. math:: M_{kq}(x) = \sum_j w_j\, B_k\!\left(1 - |u_j|^2\right) u_j^{q}, \qquad u_j = (x_j - x) / r

with the monomials :math:`u^q` up to degree 2 and smooth bumps :math:`B_k`, the Bernstein polynomials, which vanish with
their derivative at the rim :math:`|u| = 1`. Differences are taken first, because moments about another origin, shifted
afterwards, lose digits in float32. The loops are in ``local_moments.c``; without a compiler, on other devices, and
where gradients of the points are wanted, torch computes the same.
"""

import ctypes
import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional as F

from equicaps.functional.compiled import address, library

MONOMIALS = 10
"""1; x, y, z; xx, yy, zz, xy, xz, yz."""
MOST_RINGS = 6


def local_moments(
    centres: Float[Tensor, "batch m 3"],
    points: Float[Tensor, "batch n 3"],
    weights: Float[Tensor, "batch n"],
    *,
    radius: float,
    rings: int,
) -> Float[Tensor, "batch m rings 10"]:
    """The moments of every centre's neighbourhood, the innermost ring first, exact under every rotation to rounding.

    Args:
        centres: where neighbourhoods are.
        points: the clouds.
        weights: of the points; 0 for padding.
        radius: of the neighbourhoods.
        rings: the number of bumps.
    """
    if centres.shape[0] != points.shape[0] or centres.shape[-1] != 3 or points.shape != (*weights.shape, 3):
        raise ValueError(
            "local_moments: `centres` must have shape (batch, m, 3), `points` (batch, n, 3) and `weights` (batch, n), "
            f"but have shapes {tuple(centres.shape)}, {tuple(points.shape)} and {tuple(weights.shape)}."
        )
    if _is_fused(centres, points, weights, rings):
        return _fused(centres, points, weights, radius, rings)
    if torch.compiler.is_compiling() or points.is_meta:
        return plain_moments(centres, points, weights, radius=radius, rings=rings)
    parts = zip(centres.split(1), points.split(1), weights.split(1), strict=True)  # one cloud at a time fits the cache
    return torch.cat([plain_moments(*part, radius=radius, rings=rings) for part in parts])


def plain_moments(
    centres: Float[Tensor, "batch m 3"],
    points: Float[Tensor, "batch n 3"],
    weights: Float[Tensor, "batch n"],
    *,
    radius: float,
    rings: int,
) -> Float[Tensor, "batch m rings 10"]:
    """The definition, in torch."""
    u = (points.unsqueeze(1) - centres.unsqueeze(2)) / radius
    shells = torch.stack(bumps(1 - u.square().sum(-1), rings), dim=2)
    return (shells * weights[:, None, None]) @ monomials(u)


def bumps(inside: Float[Tensor, "*batch"], rings: int) -> list[Float[Tensor, "*batch"]]:
    r"""The Bernstein polynomials :math:`\binom{n}{k} g^k (1 - g)^{n-k}` of g = max(``inside``, 0), n = rings + 1.

    k falls from n to 2, so the first has its maximum at the centre and all vanish smoothly at the rim.
    """
    g = inside.clamp(min=0)
    powers = [g * g]
    for _ in range(rings - 1):
        powers.append(powers[-1] * g)
    found, rest = [powers.pop()], 1 - g
    for number in range(1, rings):
        found.append(powers.pop() * rest * math.comb(rings + 1, number))
        rest = rest * (1 - g)
    return found


def monomials(u: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 10"]:
    """All monomials up to degree 2, in the order of :data:`MONOMIALS`."""
    x, y, z = u.unbind(-1)
    return torch.stack((torch.ones_like(x), x, y, z, x * x, y * y, z * z, x * y, x * z, y * z), dim=-1)


def _is_fused(centres: Tensor, points: Tensor, weights: Tensor, rings: int) -> bool:
    given = (centres, points, weights)
    if torch.compiler.is_compiling() or rings > MOST_RINGS or not points.numel() or not centres.numel():
        return False
    if any(tensor.device.type != "cpu" or tensor.dtype != torch.float32 for tensor in given):
        return False
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given):
        return False
    if any(forward_ad.unpack_dual(tensor).tangent is not None for tensor in given):
        return False
    return library("local_moments") is not None


def _fused(centres: Tensor, points: Tensor, weights: Tensor, radius: float, rings: int) -> Tensor:
    kernel = library("local_moments")
    assert kernel is not None
    planes = torch.cat((points, weights.unsqueeze(-1)), dim=-1).mT
    planes = F.pad(planes, (0, -planes.shape[-1] % kernel.lanes())).contiguous()  # of weight 0
    centres = centres.contiguous()
    batch, count, _ = centres.shape
    out = centres.new_empty(batch, count, rings, MONOMIALS)
    sizes = (ctypes.c_int64(size) for size in (batch, count, planes.shape[-1], rings))
    kernel.local_moments(*sizes, ctypes.c_float(1 / radius), address(centres), address(planes), address(out))
    return out
