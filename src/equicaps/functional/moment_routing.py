"""Algorithm 1 on SO(2) with linear σ, from the moments of the votes alone."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_floating
from equicaps.functional.routing import Agreement, check_options
from equicaps.functional.sigma import Linear
from equicaps.groups import SO2
from equicaps.numerics import (
    CANCELLATION,
    OPPOSED_WEIGHTS,
    evidence,
    full_precision,
    noise_floor,
    safe_normalize,
    safe_reciprocal,
    speaks,
)


class MomentRouting(NamedTuple):
    """What the moments determine: everything except the weights of single votes."""

    poses: Float[Tensor, "*batch m 2"]
    activations: Float[Tensor, "*batch m"]


@full_precision
def moment_route(
    votes: Float[Tensor, "*batch m n 2"],
    activations: Float[Tensor, "*batch n"],
    *,
    iterations: int = 2,
    agreement: Agreement = "mean",
    floor: float = CANCELLATION,
) -> MomentRouting:
    r"""``route(SO2(), votes, activations, sigma=Linear())`` in one sweep over the votes, however many iterations.

    Unit vectors are written as complex numbers, and :math:`S_n = \sum_i a_i v_i^n`, except that
    :math:`S_0 = \sum_i a_i |v_i|^2`, so that undefined votes do not count. With linear σ the weights are
    :math:`w_i = a_i (1 + \langle\hat p, v_i\rangle)/2`, and because :math:`\langle\hat p, v\rangle v = (\hat p^* v^2 +
    \hat p |v|^2)/2` the next mean no longer needs the votes:

    .. math::
        \sum_i w_i v_i = \tfrac12 \big(S_1 + \tfrac12 (\hat p^* S_2 + \hat p S_0)\big), \qquad
        \sum_i w_i = \tfrac12 \big(\textstyle\sum_i a_i + \langle\hat p, S_1\rangle\big)

    Equal to :func:`equicaps.functional.route` up to rounding (a test), with the same guarantees. At an activation of
    exactly 0 the derivative is the one from above, where ``route`` takes that of :math:`|a|` as 0.

    Args:
        votes: elements of SO(2), or zero vectors.
        activations: :math:`a_i \ge 0` of the input capsules.
        iterations: the number of routing iterations.
        agreement: see :func:`equicaps.functional.route`.
        floor: see :class:`equicaps.groups.SO2`.
    """
    check_options("moment_route", iterations, Linear(), agreement)
    check_floating("moment_route", "votes", votes)
    check_alike("moment_route", {"votes": votes, "activations": activations})
    x, y = votes.unbind(-1)
    a = activations.unsqueeze(-1)
    first = torch.cat((x @ a, y @ a), dim=-1)
    xx, yy, xy = x.square() @ a, y.square() @ a, (x * y) @ a
    second, zeroth = torch.cat((xx - yy, 2 * xy), dim=-1), xx + yy
    mass = activations.sum(-1, keepdim=True).unsqueeze(-1)
    group = SO2(floor)

    total, resultant = mass.expand(*first.shape[:-1], 1), first
    poses = safe_normalize(resultant, noise_floor(total, floor))
    for _ in range(iterations):
        total = (mass + (poses * first).sum(-1, keepdim=True)) / 2
        resultant = (first + (group.compose(group.inverse(poses), second) + poses * zeroth) / 2) / 2
        poses = group.fade(safe_normalize(resultant, noise_floor(total, floor)), group.presence(poses))
    if agreement == "mean":
        voices = speaks(activations).unsqueeze(-1)
        heard, count = torch.cat((x @ voices, y @ voices), dim=-1), voices.sum(-2, keepdim=True).expand_as(total)
    else:
        heard, count = resultant, total
    apart = (count - (poses * heard).sum(-1, keepdim=True)) / 2
    distance = apart * safe_reciprocal(count, noise_floor(count, OPPOSED_WEIGHTS))
    defined = group.presence(poses) * evidence(total)
    return MomentRouting(poses, Linear()(-distance).squeeze(-1) * defined)
