"""Coarse points of a cloud, chosen so that neither rotations, nor the order of the points, nor rounding matter."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.numerics import NO_EVIDENCE, at_least, smooth_step

WAVES = 1.0
"""How often the score of a point rises and falls while its invariant grows by 1: often enough that chosen points lie
everywhere, seldom enough that rounding errors of the invariant stay small."""
OTHER_WAVES = 1.618
"""The factor that makes a choice among chosen points independent of the choice before."""
RIM = 1.0
"""The part of the chosen scores, from the cut on, over which the weight of a chosen point grows from 0 to 1."""


class PointChoice(NamedTuple):
    """The chosen points of each cloud, the strongest first."""

    indices: Int[Tensor, "batch count"]
    weights: Float[Tensor, "batch count"]
    """In [0, 1]; they fall to 0 where a slightly different cloud would have had another point chosen."""


def choose_points(points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"], count: int) -> PointChoice:
    """Choose ``count`` points of each centred cloud of about unit size, spread over it; see :func:`choose`."""
    return choose(point_invariants(points, weights), weights, count)


def point_invariants(points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n"]:
    r"""A number for each point that no rotation and no order of the points changes.

    It is :math:`|x|^2 + 2 x^T C x + 3 \langle x, m \rangle`, where C and m are the second and the third moments of the
    cloud, in float64: choices magnify its rounding errors.
    """
    x, w = points.double(), weights.double()
    total = at_least(w.sum(1), NO_EVIDENCE)[:, None, None]
    square = x.square().sum(-1)
    second = (x * w.unsqueeze(-1)).mT @ x / total
    third = (square * w).unsqueeze(1) @ x / total
    return square + 2 * ((x @ second) * x).sum(-1) + 3 * (x * third).sum(-1)


def choose(invariants: Float[Tensor, "batch n"], weights: Float[Tensor, "batch n"], count: int) -> PointChoice:
    r"""Choose ``count`` points by their invariants, with weights that fade at the cut.

    A point's score is a triangular wave of its invariant, times its own weight. The ``count`` largest are chosen, and
    weighted by how far they exceed the largest score that is not. So the chosen points, as a weighted set, depend
    continuously on the cloud: they rotate with it, do not depend on the order of its points, and rounding errors change
    weights, but never by a jump. If there are no more than ``count`` points of any
    weight, all are chosen and none fades, so only there does the number of points matter at once.

    Args:
        invariants: one of each point; times :data:`OTHER_WAVES` for a choice among points that are a choice themselves.
        weights: 0 for points that are only padding, at most 1.
        count: how many to choose.
    """
    if invariants.shape[1] <= count:
        every = torch.arange(invariants.shape[1], device=invariants.device)
        return PointChoice(every.expand(invariants.shape), weights)
    wave = WAVES * invariants
    scores = weights * (1 - 2 * (wave - torch.floor(wave + 0.5)).abs())
    best, indices = scores.topk(count + 1, dim=1)
    cut = best[:, count:]
    rim = at_least(RIM * (1 - cut), NO_EVIDENCE)
    chosen = indices[:, :count]
    few = (weights > 0).sum(1, keepdim=True) <= count  # all are chosen, and what follows is padding
    faded = torch.where(few, 1.0, smooth_step((best[:, :count] - cut) / rim)).to(weights.dtype)
    return PointChoice(chosen, faded * weights.gather(1, chosen))
