"""The first poses of a cloud: frames from moments of neighbourhoods, the analogue of image gradients."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_floating
from equicaps.numerics import (
    FAINT_MOMENT,
    FLAT_MOMENT,
    OPPOSED_WEIGHTS,
    full_precision,
    noise_floor,
    safe_normalize,
    safe_reciprocal,
    smooth_step,
    weighted_mean,
)


class PointPoses(NamedTuple):
    """Capsules at points: poses, with coordinates in the trailing axis, and activations: how far each is present."""

    poses: Float[Tensor, "batch points capsules d"]
    activations: Float[Tensor, "batch points capsules"]


@full_precision
def point_frames(
    points: Float[Tensor, "batch n 3"],
    weights: Float[Tensor, "batch n"],
    centres: Float[Tensor, "batch i 3"],
    *,
    radius: float,
) -> PointPoses:
    r"""One SO(3) capsule at each centre, from the second moment of its neighbourhood and the centroid of the cloud.

    With :math:`u_j = (x_j - x)/r`, rim weights :math:`w_j = (1 - |u_j|^2)_+^2` times those of the points, and the
    direction o from the centroid of the cloud to the centre,

    .. math::
        C = \sum_j w_j u_j u_j^T, \qquad a = (1 - 2 C/\mathrm{tr}\, C)^2\, o, \qquad
        e_1 = a/|a|, \qquad e_2 = o_\perp/|o_\perp|, \qquad e_3 = e_1 \times e_2

    where :math:`o_\perp` is the part of o that is perpendicular to :math:`e_1`. In a flat neighbourhood
    :math:`2 C/\mathrm{tr}\, C` projects onto its plane, so that :math:`e_1` is the outward normal, and :math:`e_2`
    points away from the centroid along the surface. The activation is :math:`|a| |o_\perp| \le 1`.

    ``point_frames(R x).poses == R ∘ point_frames(x).poses`` for every rotation R, and activations do not change.
    Translations and permutations of the points change nothing. All of this is exact up to rounding. Where a or
    :math:`o_\perp` is short, pose and activation fade to 0: at the centroid, in neighbourhoods that look alike along
    all axes, on a sphere around the centroid, on a straight line, and without neighbours.

    Args:
        points: the cloud.
        weights: of the points, at least 0; a point of weight 0 is only padding.
        centres: where frames are wanted.
        radius: r.
    """
    where = "point_frames"
    check_floating(where, "points", points)
    check_alike(where, {"points": points, "weights": weights, "centres": centres})
    out = safe_normalize((centres - weighted_mean(points, weights).unsqueeze(1)) / radius, _floor(points))
    # Differences before squares: sums about a far origin would lose digits in float32.
    offsets = (points.mT.unsqueeze(1) - centres.unsqueeze(-1)) / radius  # (b, i, 3, n)
    near = rim_weights(offsets.square().sum(-2)) * weights.unsqueeze(1)
    moment = (offsets * near.unsqueeze(-2)) @ offsets.mT
    moment = moment * safe_reciprocal(near.sum(-1, keepdim=True), noise_floor(near, OPPOSED_WEIGHTS)).unsqueeze(-1)
    trace = moment.diagonal(dim1=-2, dim2=-1).sum(-1, keepdim=True)
    plane = 2 * moment * safe_reciprocal(trace, FLAT_MOMENT).unsqueeze(-1)
    normal = out.unsqueeze(-1) - plane @ out.unsqueeze(-1)
    normal = (normal - plane @ normal).squeeze(-1)
    first, first_length, first_known = _direction(normal)
    second, second_length, second_known = _direction(out - (out * first).sum(-1, keepdim=True) * first)
    frame = torch.stack((first, second, torch.linalg.cross(first, second)), dim=-1).flatten(-2)
    known = first_known * second_known
    return PointPoses((frame * known).unsqueeze(-2), first_length * second_length * known)


def rim_weights(squares: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """(1 - s)² for a square distance s below 1, in radii, and 0 beyond: 1 at the centre, slope zero at the rim."""
    return torch.relu(1 - squares).square()


def _direction(
    vector: Float[Tensor, "*batch 3"],
) -> tuple[Float[Tensor, "*batch 3"], Float[Tensor, "*batch 1"], Float[Tensor, "*batch 1"]]:
    """The direction of a vector, its length, and how far it counts: not at all up to the floor, fully from twice on."""
    direction = safe_normalize(vector, _floor(vector) / 4)  # of unit length from 2.6 of these floors on
    length = (vector * direction).sum(-1, keepdim=True)
    return direction, length, smooth_step(length / FAINT_MOMENT - 1)


def _floor(like: Tensor) -> Float[Tensor, " 1"]:
    return like.new_full((1,), FAINT_MOMENT)
