"""Algorithm 1 on SO(2) with a sigmoid, at speed: no vote outlives the sweep that sums it."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.functional.planar_sweep import over_window, piecewise_sums
from equicaps.functional.routing import Agreement, check_options
from equicaps.functional.sigma import Sigma, Sigmoid
from equicaps.groups import SO2
from equicaps.numerics import (
    CANCELLATION,
    FAINT_DIRECTION,
    OPPOSED_WEIGHTS,
    evidence,
    flatten_at_one,
    full_precision,
    noise_floor,
    safe_normalize,
    safe_reciprocal,
    speaks,
)


class PlanarRouting(NamedTuple):
    """Poses, with x and y in separate planes, and activations; windows in the trailing axis."""

    poses: Float[Tensor, "2 m windows"]
    activations: Float[Tensor, "m windows"]


def directions(raw: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch 2"]:
    """Vectors of the plane as elements of SO(2): divided by their length; a zero vector stays zero."""
    return raw * torch.rsqrt(raw.square().sum(-1, keepdim=True) + FAINT_DIRECTION**2)


def planar_mean_pose(
    poses: Float[Tensor, "2 c k windows"], *, together: bool = True, floor: float = CANCELLATION
) -> Float[Tensor, "windows 2"] | Float[Tensor, "c windows 2"]:
    """:func:`equicaps.functional.mean_pose` of every window, of all capsules ``together`` or of each capsule alone."""
    weights = flatten_at_one(poses.square().sum(0))
    resultant, total = poses * weights, weights
    if together:
        resultant, total = resultant.sum(1), total.sum(0)
    weights = over_window(total).unsqueeze(-1)
    return safe_normalize(over_window(resultant).movedim(0, -1), noise_floor(weights, floor))


@full_precision
def planar_route(
    features: Float[Tensor, "f k windows"],
    weight: Float[Tensor, "e m c f"],
    poses: Float[Tensor, "2 c k windows"],
    activations: Float[Tensor, "c k windows"],
    *,
    iterations: int = 2,
    sigma: Sigma = Sigmoid(),
    agreement: Agreement = "mean",
    floor: float = CANCELLATION,
) -> PlanarRouting:
    r"""``route(SO2(), p ∘ t, a, sigma=Sigmoid(alpha, beta))`` where :math:`t` is a linear image of ``features``.

    Equal to :func:`equicaps.functional.route` up to rounding, values and gradients (a test). At an activation of
    exactly 0 the derivative is the one from above, where ``route`` takes that of :math:`|a|` as 0. Three things make it
    fast:

    - Algorithm 1 needs only sums over votes. With :math:`q = α\hat p/2`, one iteration is
      :math:`S = \sum_i a_i\, σ(\langle q, v_i\rangle + β - α/2)\, v_i`, and the mean distance is
      :math:`(1 - \langle\hat p, \sum_i v_i\rangle/n)/2`, which takes no further sweep.
    - Votes exist for only some windows and output capsules at a time
      (:func:`equicaps.functional.planar_sweep.piecewise_sums`).
    - Windows run along the trailing axis, so all products and sums over capsules run along contiguous rows.

    Args:
        features: of every aligned position, see :meth:`equicaps.nn.TransformGenerator.features`.
        weight: from features to 2-vectors, which are normalised (e = 2), or to angles (e = 1).
        poses: :math:`p_i`.
        activations: :math:`a_i \ge 0`.
        iterations: the number of routing iterations.
        sigma: a σ whose ``closed_form`` is ``"sigmoid"``.
        agreement: see :func:`equicaps.functional.route`.
        floor: see :class:`equicaps.groups.SO2`.
    """
    check_options("planar_route", iterations, sigma, agreement)
    if sigma.closed_form != "sigmoid":
        raise ValueError(
            f"planar_route: `sigma` must declare the closed form 'sigmoid', as Sigmoid() does, but is {sigma!r}."
        )
    alpha, beta = (
        torch.as_tensor(getattr(sigma, name), dtype=features.dtype, device=features.device)
        for name in ("alpha", "beta")
    )
    voices = speaks(activations.flatten(0, 1).T).T.unflatten(0, activations.shape[:2])
    resultant, total, everyone, fade = piecewise_sums(
        features, weight, poses, activations, voices, alpha, beta, iterations, floor
    )
    mean = safe_normalize(resultant.movedim(0, -1), noise_floor(total.unsqueeze(-1), floor)).movedim(-1, 0)
    pose = SO2().fade(mean.movedim(0, -1), fade).movedim(-1, 0)
    if agreement == "mean":
        spoken, count = everyone, over_window(voices.sum(0)).expand(total.shape)
    else:
        spoken, count = resultant, total
    least = noise_floor(count.unsqueeze(-1), OPPOSED_WEIGHTS).squeeze(-1)
    distance = (count - (pose * spoken).sum(0)) / 2 * safe_reciprocal(count, least)
    defined = SO2().presence(pose.movedim(0, -1)) * evidence(total.unsqueeze(-1))
    return PlanarRouting(pose, torch.sigmoid(beta - alpha * distance) * defined)
