"""Neighbourhoods of a cloud, and Algorithm 1 in each of them with pose-aligned votes (Section 3)."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from equicaps._checks import check_alike, check_floating
from equicaps.functional.point_frames import PointPoses, rim_weights
from equicaps.functional.routing import Routing, route
from equicaps.functional.sigma import Sigma, Sigmoid
from equicaps.functional.window_routing import Transformations
from equicaps.groups import Group
from equicaps.numerics import COINCIDENT, FAINT_ACTIVITY, FAINT_POINT, full_precision, steepened, weighted_mean


class Neighbours(NamedTuple):
    """The neighbourhood of each centre: k points of the cloud, in no particular order."""

    indices: Int[Tensor, "batch i k"]
    offsets: Float[Tensor, "batch i k 3"]
    """From the centre to the point, in radii."""
    weights: Float[Tensor, "batch i k"]
    """The weight of the point, times a rim weight that is zero at the radius and at the first point left out."""


@full_precision
def nearest_neighbours(
    points: Float[Tensor, "batch n 3"],
    weights: Float[Tensor, "batch n"],
    centres: Float[Tensor, "batch i 3"],
    *,
    radius: float,
    count: int,
) -> Neighbours:
    r"""The ``count`` points that are nearest to each centre, with weights that hide which ones were taken.

    The rim ρ is the distance of the nearest point that is left out, or the radius if that is shorter; weights are
    :math:`(1 - |u|^2/ρ^2)_+^2` times those of the points. So they are continuous in points, centres and weights, and
    neither rounding nor ties nor the order of the points changes a sum over neighbours by more than rounding. A point
    whose weight falls below 1/4 moves away, beyond every rim at 1/8; otherwise a point that appears with weight 0 could
    take the place of another one.

    Args:
        points: the cloud.
        weights: of the points, in [0, 1]; 0 for padding.
        centres: any positions.
        radius: the largest distance of a neighbour.
        count: k; all points if there are no more.
    """
    where = "nearest_neighbours"
    check_floating(where, "points", points)
    check_alike(where, {"points": points, "weights": weights, "centres": centres})
    offsets = (points.mT.unsqueeze(1) - centres.unsqueeze(-1)) / radius  # (b, i, 3, n)
    squares = offsets.square().sum(-2)
    if points.shape[1] > count:
        away = 2 * torch.relu(1 - weights / FAINT_POINT)
        found = (squares + away.square().unsqueeze(1)).topk(count + 1, dim=-1, largest=False)
        nearest, indices = found.values[..., :count], found.indices[..., :count]
        nearest = nearest / found.values[..., count:].clamp(COINCIDENT**2, 1)
    else:
        nearest = squares
        indices = torch.arange(points.shape[1], device=points.device).expand(squares.shape)
    offsets = (take(points, indices) - centres.unsqueeze(2)) / radius
    return Neighbours(indices, offsets, rim_weights(nearest) * take(weights.unsqueeze(-1), indices).squeeze(-1))


def take(values: Shaped[Tensor, "batch n *c"], indices: Int[Tensor, "batch i k"]) -> Shaped[Tensor, "batch i k *c"]:
    """The values at the neighbours of each centre."""
    rows = values.flatten(2)
    taken = rows.gather(1, indices.flatten(1).unsqueeze(-1).expand(-1, -1, rows.shape[-1]))
    return taken.view(*indices.shape, *values.shape[2:])


@full_precision
def point_votes(
    group: Group, generator: Transformations, near: Neighbours, poses: Float[Tensor, "batch n c d"]
) -> Float[Tensor, "batch i m v d"]:
    r"""The votes :math:`p \circ t(\bar p^{-1} u)` in every neighbourhood, sorted by capsule, then by neighbour.

    The mean pose :math:`\bar p` weights poses like neighbours. Undefined poses do not count in it.
    """
    inputs = take(poses, near.indices).transpose(2, 3)  # (b, i, c, k, d)
    weights = group.presence(inputs) * near.weights.unsqueeze(2)
    if generator.per_capsule:
        mean = group.mean(inputs, weights)
    else:
        mean = group.mean(inputs.flatten(2, 3), weights.flatten(2)).unsqueeze(2)
    aligned = group.act(group.inverse(mean).unsqueeze(3), near.offsets.unsqueeze(2))  # (b, i, c or 1, k, 3)
    t = generator(aligned.transpose(2, 3).flatten(3)).movedim(2, -2)  # (b, i, m, c, k, d)
    return group.compose(inputs.unsqueeze(2), t).flatten(3, 4)


def route_points(
    group: Group,
    generator: Transformations,
    near: Neighbours,
    capsules: PointPoses,
    *,
    iterations: int = 2,
    sigma: Sigma = Sigmoid(),
) -> Routing:
    r"""Pose-aligned votes and Algorithm 1 in every neighbourhood.

    .. math::
        \bar p = M(p_1, \dots, p_n, w), \qquad v_{ij} = p_i \circ t_{ij}(\bar p^{-1} u_i), \qquad
        \hat p_j = \mathrm{route}(v_{:j}, w a), \qquad
        \hat a_j = σ\Big(-\frac{\sum_i w_i a_i\, δ(\hat p_j, v_{ij})}{\sum_i w_i a_i}\Big)

    The mean distance is weighted, unlike the paper's, or else a neighbour at the rim would count like all others as
    soon as its weight is not zero. When cloud and poses are rotated together, so are the poses of the output, and
    activations do not change: exact for every rotation, up to rounding, wherever the means are defined. Poses and
    activations fade to 0 where the activity :math:`\sum_i w_i a_i` of a neighbourhood, averaged over capsules, is below
    0.5; Algorithm 1 would not notice it.

    Args:
        group: the group of the poses; it must act on space (``point_dim == 3``).
        generator: t.
        near: neighbourhoods with offsets u and weights w.
        capsules: those of the cloud.
        iterations: see :func:`route`.
        sigma: see :func:`route`.

    Returns:
        Poses (batch, i, m, d), activations (batch, i, m) and routing weights of the capsules at the centres.
    """
    votes = point_votes(group, generator, near, capsules.poses)
    inputs = (take(capsules.activations, near.indices) * near.weights.unsqueeze(-1)).transpose(2, 3).flatten(2)
    poses, _, weights = route(group, votes, inputs, iterations=iterations, sigma=sigma)
    distances = group.distance(poses.unsqueeze(-2), votes)
    agreement = sigma(-weighted_mean(distances.unsqueeze(-1), inputs.unsqueeze(2))).squeeze(-1)
    heard = torch.tanh(steepened(inputs.sum(-1, keepdim=True) / (FAINT_ACTIVITY * capsules.poses.shape[2])))
    heard = heard.expand_as(agreement)
    return Routing(group.fade(poses, heard), agreement * group.presence(poses) * heard, weights)
