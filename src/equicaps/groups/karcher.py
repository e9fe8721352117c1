"""The general weighted mean."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_count, check_floating, check_mean
from equicaps.groups.base import Group
from equicaps.numerics import evidence, weighted_mean


def karcher_mean(
    group: Group,
    elements: Float[Tensor, "*#batch n d"],
    weights: Float[Tensor, "*#batch n"],
    *,
    iterations: int = 12,
) -> Float[Tensor, "*batch d"]:
    r"""The mean M for any group with exp and log, which Section 7 of the paper asks for.

    .. math:: p \leftarrow p \circ \exp\Big(\textstyle\sum_i w_i \log(p^{-1} \circ v_i) / \sum_i w_i\Big)

    from the element of largest weight. Each step is left-equivariant, :math:`(g \circ p)^{-1} \circ (g \circ v) =
    p^{-1} \circ v`, so every iterate is, converged or not. The limit is the Karcher mean on groups with a bi-invariant
    metric (SO(2), SO(3), translations, scale) and the exponential barycentre on the others. It is independent of the
    order of the elements where it is unique: votes in a half circle for SO(2), in a ball of radius π/2 for SO(3).

    Args:
        group: supplies compose, inverse, exp and log; its own ``mean`` is not used.
        elements: votes.
        weights: non-negative; all zero gives the undefined pose. Give undefined elements weight 0: their log is 0, a
            vote for the present mean.
        iterations: fixed, so that the result is differentiable by plain autograd. Votes within 60 degrees of each other
            reach float32 in 5 and float64 in 10.

    Returns:
        The mean, over axis -2.
    """
    if not isinstance(group, Group):
        raise TypeError(f"karcher_mean: `group` must be a Group such as SO2(), but is {group!r}.")
    where = f"karcher_mean on {group!r}"
    check_count(where, "iterations", iterations)
    check_floating(where, "elements", elements)
    check_floating(where, "weights", weights)
    check_alike(where, {"elements": elements, "weights": weights})
    check_mean(group, where, elements, weights)
    batch = torch.broadcast_shapes(elements.shape[:-2], weights.shape[:-1])
    elements, weights = elements.expand(*batch, -1, -1), weights.expand(*batch, -1)
    heaviest = weights.argmax(-1)[..., None, None].expand(*batch, 1, group.dim)
    mean = elements.gather(-2, heaviest).squeeze(-2)
    for _ in range(iterations):
        tangents = group.log(group.compose(group.inverse(mean).unsqueeze(-2), elements))
        mean = group.compose(mean, group.exp(weighted_mean(tangents, weights)))
    return mean * evidence(weights).unsqueeze(-1)
