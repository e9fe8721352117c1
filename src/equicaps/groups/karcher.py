"""A weighted mean for every group with exp and log."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_count, check_floating, check_weighted_elements
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

    The iteration starts at the element with the largest weight. Each step is left-equivariant,
    :math:`(g \circ p)^{-1} \circ (g \circ v) = p^{-1} \circ v`, and therefore so is every iterate, converged or not.
    The limit is the Karcher mean on groups with a bi-invariant metric (SO(2), SO(3), translations, scale) and the
    exponential barycentre on the others. It does not depend on the order of the elements wherever it is unique: for
    votes within a half circle on SO(2), within a ball of radius π/2 on SO(3).

    Args:
        group: supplies compose, inverse, exp and log; its own ``mean`` is not used.
        elements: the votes.
        weights: non-negative; if all are zero, the result is the undefined pose. Give undefined elements weight 0:
            their log is 0, which would count as a vote for the current mean.
        iterations: their number is fixed so that plain autograd can differentiate the result. For votes within 60
            degrees of each other, 5 reach float32 precision and 10 reach float64 precision.

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
    check_weighted_elements(group, where, elements, weights)
    batch = torch.broadcast_shapes(elements.shape[:-2], weights.shape[:-1])
    elements, weights = elements.expand(*batch, -1, -1), weights.expand(*batch, -1)
    heaviest = weights.argmax(-1)[..., None, None].expand(*batch, 1, group.dim)
    mean = elements.gather(-2, heaviest).squeeze(-2)
    for _ in range(iterations):
        tangents = group.log(group.compose(group.inverse(mean).unsqueeze(-2), elements))
        mean = group.compose(mean, group.exp(weighted_mean(tangents, weights)))
    return mean * evidence(weights).unsqueeze(-1)
