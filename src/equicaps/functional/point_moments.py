r"""The moments that layers for points steer by: of the points themselves, and of capsules at points.

With positions u relative to a centre, in units of the radius, and smooth bumps :math:`B_r(|u|)`, the scalars are
:math:`\sum B f`, the vectors :math:`\sum B f u` and :math:`\sum B f e_k`, and the symmetric matrices
:math:`\sum B f u u^T`, for every ring r, capsule with feature f, and column :math:`e_k` of its pose.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.local_moments import bumps, local_moments
from equicaps.functional.steering import Moments, dot
from equicaps.numerics import CLOUD_NOISE, NO_EVIDENCE, at_least, saturating_inverse, weighted_mean

ROWS = ((0, 3, 4), (3, 1, 5), (4, 5, 2))
"""The rows of a symmetric matrix, by the numbers of its six planes."""
ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""The row and the column of each of those."""
SYMMETRIC = (0, 4, 8, 1, 2, 5)
"""Their positions in a flattened 3x3 matrix."""


class Centred(NamedTuple):
    """Clouds around the origin, of unit size."""

    points: Float[Tensor, "batch n 3"]
    exact: Float[Tensor, "batch n 3"]
    """The same in float64, for what magnifies rounding errors."""


def centre(points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"], *, scale: bool) -> Centred:
    """Clouds around their weighted mean, with ``scale`` at a root mean square distance of 1; padding is put there, too.

    A cloud so small, or so far away, that rounding errors are all that is left of it shrinks to a point. Computed in
    float64, since choices of points magnify rounding errors.
    """
    counts = weights.unsqueeze(-1) > 0
    given, shares = torch.where(counts, points, 0).double(), weights.double()
    around = torch.where(counts, given - weighted_mean(given, shares).unsqueeze(1), 0)
    if scale:
        square = weighted_mean(around.square().sum(-1, keepdim=True), shares).unsqueeze(-1)
        floor = CLOUD_NOISE * at_least(given.detach().abs().amax((1, 2)), NO_EVIDENCE)[:, None, None]
        around = around * saturating_inverse(square, floor)
    return Centred(around.to(points.dtype), around)


def normalised(weights: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
    """Weights whose sum is 1, or all 0."""
    return weights / at_least(weights.sum(1, keepdim=True), NO_EVIDENCE)


def cloud_moments(
    centres: Float[Tensor, "batch m 3"],
    points: Float[Tensor, "batch n 3"],
    weights: Float[Tensor, "batch n"],
    *,
    radius: float,
    rings: int,
) -> Moments:
    """What a first layer knows: the local moments of each centre, where it is, and the moments of the whole cloud.

    The vectors are the first local moments, the second ones times the position x, then x, C x and m, with the second
    moments C and the third m of the whole cloud; the matrices are the second local moments and C.
    """
    weights = normalised(weights)
    batch, count, _ = centres.shape
    found = local_moments(centres, points, weights, radius=radius, rings=rings)
    zeroth, first, second = found.movedim(-1, 0).flatten(1, 2).split((1, 3, 6))
    C = (points * weights.unsqueeze(-1)).mT @ points
    third = (points.square().sum(-1) * weights).unsqueeze(1) @ points
    at, moved, third = (_planes(entry) for entry in (centres, centres @ C, third.expand(-1, count, -1)))
    x = at.unbind(0)
    turned = torch.stack([dot([second[number] for number in row], x) for row in ROWS])
    scalars = torch.cat((zeroth[0], *(dot(x, vector.unbind(0)) for vector in (at, moved, third))), -1)
    vectors = torch.cat((first, turned, at, moved, third), -1)
    whole = C.flatten(1)[:, list(SYMMETRIC)].T[:, :, None].expand(-1, -1, count).reshape(6, batch * count, 1)
    return Moments(scalars, vectors, torch.cat((second, whole), -1))


def capsule_moments(
    centres: Float[Tensor, "batch m 3"], cloud: CapsuleCloud, *, radius: float, rings: int, order: int
) -> Moments:
    """The moments of capsules around each centre: of their features up to ``order`` 1 or 2, and of their poses."""
    batch, count, _ = centres.shape
    distances = (centres.unsqueeze(2) - cloud.positions.unsqueeze(1)).square().sum(-1) / radius**2
    shells = torch.cat(bumps(1 - distances, rings), 1) * normalised(cloud.weights).unsqueeze(1)
    features = cloud.activations
    x, y, z = (coordinate * features for coordinate in cloud.positions.unsqueeze(-1).unbind(2))
    columns = [features, x, y, z]
    if order == 2:
        a, b, c = cloud.positions.unsqueeze(-1).unbind(2)
        columns += [a * x, b * y, c * z, a * y, a * z, b * z]
    columns += [features * entry for entry in cloud.poses.unbind(-1)]
    found = (shells @ torch.cat(columns, -1)).unflatten(1, (rings, count)).unflatten(-1, (len(columns), -1))
    planes = found.permute(3, 0, 2, 1, 4).reshape(len(columns), batch * count, rings * features.shape[-1])
    of_features, of_poses = planes.split((len(columns) - 9, 9))
    zeroth, first, second = _shifted(of_features, _planes(centres), radius)
    return Moments(zeroth, torch.cat((first, _by_coordinate(of_poses)), -1), second)


def own_moments(cloud: CapsuleCloud) -> Moments:
    """The moments of the capsules at each point itself: their features, and the columns of their poses."""
    features = cloud.activations.flatten(0, 1)
    planes = torch.stack([features * entry for entry in cloud.poses.flatten(0, 1).unbind(-1)])
    return Moments(features, _by_coordinate(planes), features.new_zeros(6, features.shape[0], 0))


def mean_moments(cloud: CapsuleCloud) -> Moments:
    """The weighted means over each cloud of what :func:`own_moments` has at its points."""
    features, weights = cloud.activations, normalised(cloud.weights).unsqueeze(1)
    columns = torch.cat([features, *(features * entry for entry in cloud.poses.unbind(-1))], -1)
    planes = (weights @ columns).squeeze(1).unflatten(-1, (10, -1)).movedim(1, 0)
    return Moments(planes[0], _by_coordinate(planes[1:]), features.new_zeros(6, features.shape[0], 0))


def _planes(vectors: Float[Tensor, "batch m 3"]) -> Float[Tensor, "3 n 1"]:
    return vectors.flatten(0, 1).T.unsqueeze(-1)


def _by_coordinate(planes: Float[Tensor, "9 n c"]) -> Float[Tensor, "3 n c3"]:
    """From the entries of matrices, row by row, to one vector for each column."""
    return planes.unflatten(0, (3, 3)).transpose(1, 2).flatten(2)


def _shifted(
    moments: Float[Tensor, "q n c"], at: Float[Tensor, "3 n 1"], radius: float
) -> tuple[Float[Tensor, "n c"], Float[Tensor, "3 n c"], Float[Tensor, "6 n k"]]:
    """Moments about the origin, up to order 1 or 2, as moments about other places, in units of the radius."""
    zeroth, *rest = moments.unbind(0)
    first, second, x = rest[:3], rest[3:], at.unbind(0)
    shifted = torch.stack([moment - place * zeroth for moment, place in zip(first, x, strict=True)]) / radius
    if not second:
        return zeroth, shifted, zeroth.new_zeros(6, zeroth.shape[0], 0)
    products = [
        moment - x[i] * first[j] - x[j] * first[i] + x[i] * x[j] * zeroth
        for moment, (i, j) in zip(second, ENTRIES, strict=True)
    ]
    return zeroth, shifted, torch.stack(products) / radius**2
