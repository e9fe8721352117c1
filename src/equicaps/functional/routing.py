"""Routing by agreement: Algorithm 1."""

from typing import Literal, NamedTuple, get_args

from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_floating
from equicaps.functional.sigma import Sigma, Sigmoid
from equicaps.groups import Group
from equicaps.numerics import evidence, full_precision, speaks, weighted_mean


class Routing(NamedTuple):
    """The result of Algorithm 1."""

    poses: Float[Tensor, "*batch m d"]
    activations: Float[Tensor, "*batch m"]
    weights: Float[Tensor, "*batch m n"]


Agreement = Literal["mean", "weighted"]


@full_precision
def route(
    group: Group,
    votes: Float[Tensor, "*batch m n d"],
    activations: Float[Tensor, "*batch n"],
    *,
    iterations: int = 2,
    sigma: Sigma = Sigmoid(),
    agreement: Agreement = "mean",
) -> Routing:
    r"""Algorithm 1 of the paper for any group, starting from the votes.

    .. math::
        \hat p_j &\leftarrow M(v_{:j}, a) \\
        w_{ij} &\leftarrow σ(-δ(\hat p_j, v_{ij})) \cdot a_i, \qquad
        \hat p_j \leftarrow M(v_{:j}, w_{:j}) \qquad \text{(r times)} \\
        \hat a_j &\leftarrow σ\Big(-\tfrac1n \textstyle\sum_i δ(\hat p_j, v_{ij})\Big)

    Theorems 1 and 2: ``route(g ∘ votes).poses == g ∘ route(votes).poses``, and activations and weights do not change.
    This is exact up to rounding as long as ``group.mean_is_closed`` and the mean is defined. Where it is not (votes
    that cancel, no activation), the pose is undefined (``group.presence`` 0) and the activation 0. Autocast has no
    effect.

    Args:
        group: its ``mean`` is M, its ``distance`` δ.
        votes: :math:`v_{ij} = p_i \circ t_{ij}`.
        activations: :math:`a_i \ge 0` of the input capsules.
        iterations: r; the paper uses 2, and 0 switches routing off (M of the votes weighted by a, as a control).
        sigma: :class:`Sigmoid` (paper), :class:`Linear` (authors' code) or :class:`Softmax` over outputs.
        agreement: ``"mean"`` averages δ over all votes (paper), ``"weighted"`` weights them by the routing weights
            (authors' code). Either way an input with activation 0 casts no vote, since its pose is undefined.

    Returns:
        Poses, activations and the weights of the last mean.
    """
    _check(group, votes, activations)
    check_options(f"route on {group!r}", iterations, sigma, agreement)
    a = activations.unsqueeze(-2)
    weights = a.expand(votes.shape[:-1])
    poses = group.mean(votes, weights)
    distances = group.distance(poses.unsqueeze(-2), votes)
    for _ in range(iterations):
        weights = sigma(-distances) * a
        # What was undefined stays undefined: a faint pose would bias the weights and so amplify its own noise.
        poses = group.fade(group.mean(votes, weights), group.presence(poses))
        distances = group.distance(poses.unsqueeze(-2), votes)
    heard = speaks(a).expand_as(weights) if agreement == "mean" else weights
    distance = weighted_mean(distances.unsqueeze(-1), heard)
    defined = group.presence(poses) * evidence(weights)
    return Routing(poses, sigma(-distance).squeeze(-1) * defined, weights)


def check_options(where: str, iterations: object, sigma: object, agreement: object) -> None:
    """Raise unless the three options of Algorithm 1 are valid."""
    if not isinstance(iterations, int) or isinstance(iterations, bool) or iterations < 0:
        raise ValueError(f"{where}: `iterations` must be 0 (no routing), 1, 2, ..., but is {iterations!r}.")
    if not isinstance(sigma, Sigma):
        raise TypeError(f"{where}: `sigma` must be a Sigma such as Sigmoid(), Linear() or Softmax(), but is {sigma!r}.")
    if agreement not in get_args(Agreement):
        raise ValueError(f"{where}: `agreement` must be one of {get_args(Agreement)}, but is {agreement!r}.")


def _check(group: Group, votes: Tensor, activations: Tensor) -> None:
    if not isinstance(group, Group):
        raise TypeError(f"route: `group` must be a Group such as SO2(), but is {group!r}.")
    where = f"route on {group!r}"
    check_floating(where, "votes", votes)
    check_floating(where, "activations", activations)
    check_alike(where, {"votes": votes, "activations": activations})
    if votes.ndim < 3 or votes.shape[-1] != group.dim:
        raise ValueError(
            f"{where}: `votes` must have shape (*batch, m, n, {group.dim}) with m output and n input capsules, "
            f"but has shape {tuple(votes.shape)}."
        )
    m, n = votes.shape[-3], votes.shape[-2]
    if m == 0 or n == 0:
        raise ValueError(f"{where}: needs at least one output and one input capsule, but `votes` has m={m}, n={n}.")
    if activations.shape != (*votes.shape[:-3], n):
        raise ValueError(
            f"{where}: `activations` must have shape {(*votes.shape[:-3], n)}, one for each input capsule of `votes` "
            f"{tuple(votes.shape)}, but has shape {tuple(activations.shape)}."
        )
