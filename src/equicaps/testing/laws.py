"""The laws of a group, each a function whose docstring is the identity that a report prints."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from equicaps.groups import Group
from equicaps.numerics import law_tolerance
from equicaps.testing.comparison import relative_error

VOTES = 5


class Sample(NamedTuple):
    """A group with the batch shape, dtype and random numbers that a law is tested on."""

    group: Group
    shape: tuple[int, ...]
    dtype: torch.dtype
    generator: torch.Generator

    def element(self, *extra: int) -> Tensor:
        """Random elements."""
        return self.group.random(*self.shape, *extra, generator=self.generator, dtype=self.dtype)

    def identity(self) -> Tensor:
        """The neutral element."""
        return self.group.identity(*self.shape, dtype=self.dtype)

    def normal(self, *sizes: int) -> Tensor:
        """Standard normal numbers."""
        return torch.randn(*self.shape, *sizes, generator=self.generator, dtype=self.dtype)

    def votes(self) -> tuple[Tensor, Tensor]:
        """Elements scattered around a common one, so that they do not cancel, with weights well above zero."""
        weights = torch.rand(*self.shape, VOTES, generator=self.generator, dtype=self.dtype)
        scatter = self.group.exp(self.normal(VOTES, self.group.algebra_dim) / 2)
        return self.group.compose(self.element(1), scatter), weights + 0.1


def _unless(condition: Tensor | bool) -> float:
    """The error of a law that either holds (0) or does not (1)."""
    return 0.0 if bool(condition) else 1.0


# Group, action, exponential map and sampler.


def composition_is_associative(s: Sample) -> float:
    """(g ∘ h) ∘ k = g ∘ (h ∘ k)"""
    g, h, k = s.element(), s.element(), s.element()
    compose = s.group.compose
    return relative_error(compose(compose(g, h), k), compose(g, compose(h, k)))


def identity_is_neutral(s: Sample) -> float:
    """e ∘ g = g = g ∘ e"""
    g, e = s.element(), s.identity()
    return max(relative_error(s.group.compose(e, g), g), relative_error(s.group.compose(g, e), g))


def inverse_undoes(s: Sample) -> float:
    """g⁻¹ ∘ g = e = g ∘ g⁻¹"""
    g, e = s.element(), s.identity()
    back = s.group.inverse(g)
    return max(relative_error(s.group.compose(back, g), e), relative_error(s.group.compose(g, back), e))


def group_is_closed(s: Sample) -> float:
    """e, g, g⁻¹, g ∘ h and exp(a) are elements, NaN is not"""
    g, h = s.element(), s.element()
    members = (
        s.identity(),
        g,
        s.group.inverse(g),
        s.group.compose(g, h),
        s.group.exp(s.normal(s.group.algebra_dim) / 4),
    )
    outside = s.group.contains(torch.full_like(g, torch.nan))
    return _unless(all(s.group.contains(member).all() for member in members) and not outside.any())


def action_follows_composition(s: Sample) -> float:
    """(g ∘ h) · x = g · (h · x),  e · x = x"""
    g, h, x = s.element(), s.element(), s.normal(s.group.point_dim)
    act = s.group.act
    return max(
        relative_error(act(s.group.compose(g, h), x), act(g, act(h, x))), relative_error(act(s.identity(), x), x)
    )


def action_moves_points(s: Sample) -> float:
    """g · x ≠ x"""
    x = s.normal(s.group.point_dim)
    return _unless(relative_error(s.group.act(s.element(), x), x) > law_tolerance(s.dtype))


def exp_starts_at_identity(s: Sample) -> float:
    """exp(0) = e,  log(e) = 0"""
    zero = torch.zeros(*s.shape, s.group.algebra_dim, dtype=s.dtype)
    return max(relative_error(s.group.exp(zero), s.identity()), relative_error(s.group.log(s.identity()), zero))


def exp_is_a_one_parameter_group(s: Sample) -> float:
    """exp(a) ∘ exp(2a) = exp(3a)"""
    a = s.normal(s.group.algebra_dim) / 4
    return relative_error(s.group.compose(s.group.exp(a), s.group.exp(2 * a)), s.group.exp(3 * a))


def log_inverts_exp(s: Sample) -> float:
    """log(exp(a)) = a,  exp(log(exp(a))) = exp(a)"""
    a = s.normal(s.group.algebra_dim) / 4
    g = s.group.exp(a)
    return max(relative_error(s.group.log(g), a), relative_error(s.group.exp(s.group.log(g)), g))


def exp_and_log_have_finite_gradients_at_identity(s: Sample) -> float:
    """∂exp(0), ∂log(e) < ∞, and the same for 1e-30 a in place of 0"""
    tiny = 1e-30 * s.normal(*s.shape, s.group.algebra_dim)
    both = torch.stack((torch.zeros_like(tiny), tiny))
    return max(_gradient(s.group.exp, both), _gradient(s.group.log, s.group.exp(both)))


def batches_broadcast(s: Sample) -> float:
    """compose, act, M, δ of (3, 1, *batch) with (1, 2, *batch) are (3, 2, *batch), entry by entry, in the dtype"""
    g, h = (s.group.random(*lead, *s.shape, generator=s.generator, dtype=s.dtype) for lead in ((3, 1), (1, 2)))
    x = torch.randn(1, 2, *s.shape, s.group.point_dim, generator=s.generator, dtype=s.dtype)
    votes = s.group.exp(
        torch.randn(3, 1, *s.shape, VOTES, s.group.algebra_dim, generator=s.generator, dtype=s.dtype) / 4
    )
    weights = torch.rand(1, 2, *s.shape, VOTES, generator=s.generator, dtype=s.dtype) + 0.1
    cases = (
        (s.group.compose(g, h), s.group.compose(g[1, 0], h[0, 1]), (s.group.dim,)),
        (s.group.act(g, x), s.group.act(g[1, 0], x[0, 1]), (s.group.point_dim,)),
        (s.group.mean(votes, weights), s.group.mean(votes[1, 0], weights[0, 1]), (s.group.dim,)),
        (s.group.distance(g, h), s.group.distance(g[1, 0], h[0, 1]), ()),
    )
    for whole, single, trailing in cases:
        if (
            whole.shape != (3, 2, *s.shape, *trailing)
            or single.shape != (*s.shape, *trailing)
            or whole.dtype != s.dtype
        ):
            return 1.0
    return max(relative_error(whole[1, 1], single) for whole, single, _ in cases)


def sampler_is_seeded_and_varied(s: Sample) -> float:
    """random(generator=) repeats for the same seed, has the dtype, and gives different elements"""
    seeds = (0, 0, 1)
    a, b, c = (s.group.random(3, generator=torch.Generator().manual_seed(k), dtype=s.dtype) for k in seeds)
    differ = relative_error(a, c) > law_tolerance(s.dtype) and relative_error(a[0], a[1]) > law_tolerance(s.dtype)
    return _unless(torch.equal(a, b) and differ and a.dtype == s.dtype and a.shape == (3, s.group.dim))


# The mean M.


def mean_is_left_equivariant(s: Sample) -> float:
    """M(g ∘ P, w) = g ∘ M(P, w)"""
    (votes, weights), g = s.votes(), s.element()
    moved = s.group.mean(s.group.compose(g.unsqueeze(-2), votes), weights)
    return relative_error(moved, s.group.compose(g, s.group.mean(votes, weights)))


def mean_ignores_order(s: Sample) -> float:
    """M(P, w) = M(πP, πw)"""
    votes, weights = s.votes()
    return relative_error(s.group.mean(votes.flip(-2), weights.flip(-1)), s.group.mean(votes, weights))


def mean_is_closed(s: Sample) -> float:
    """M(P, w) ∈ G"""
    return _unless(s.group.contains(s.group.mean(*s.votes())).all())


def mean_of_equal_elements_is_the_element(s: Sample) -> float:
    """M((p, ..., p), w) = p"""
    p, (_, weights) = s.element(), s.votes()
    return relative_error(s.group.mean(p.unsqueeze(-2).expand(*s.shape, VOTES, -1), weights), p)


def mean_follows_weights(s: Sample) -> float:
    """M(P, e_i) = p_i,  M(P, 3w) = M(P, w)"""
    votes, weights = s.votes()
    one_hot = torch.zeros_like(weights)
    one_hot[..., 1] = 1
    selected = relative_error(s.group.mean(votes, one_hot), votes[..., 1, :])
    return max(selected, relative_error(s.group.mean(votes, 3 * weights), s.group.mean(votes, weights)))


def mean_survives_extreme_weights(s: Sample) -> float:
    """M(P, 1e30 w) = M(P, w), and M(P, 1e-30 w) is finite, with finite gradients"""
    votes, weights = s.votes()
    huge, tiny = (s.group.mean(votes, scale * weights) for scale in (1e30, 1e-30))
    gradients = max(_gradient(s.group.mean, votes.clone(), scale * weights) for scale in (1e30, 1e-30))
    return max(relative_error(huge, s.group.mean(votes, weights)), gradients, _unless(tiny.isfinite().all()))


def mean_without_evidence_is_zero(s: Sample) -> float:
    """M(P, 0) = 0, the undefined pose"""
    votes, weights = s.votes()
    return relative_error(s.group.mean(votes, torch.zeros_like(weights)), torch.zeros_like(votes[..., 0, :]))


def mean_has_finite_gradients(s: Sample) -> float:
    """∂M < ∞ when votes agree, when weights are zero and when they cancel"""
    votes, weights = s.votes()
    equal = s.element().unsqueeze(-2).expand(*s.shape, VOTES, -1)
    signs = torch.tensor([1.0, -1.0], dtype=s.dtype).expand(*s.shape, 2)
    cases = ((equal, weights), (votes, torch.zeros_like(weights)), (equal[..., :2, :], signs))
    return max(_gradient(s.group.mean, elements.clone(), w.clone()) for elements, w in cases)


def mean_is_steady(s: Sample) -> float:
    """|M(P + ε) - M(P)| < 1e5 |ε|, even for votes spaced evenly around a circle, which cancel for rotations"""
    steps = torch.arange(6, dtype=s.dtype) * (torch.pi / 3)
    circle = s.group.exp(steps[:, None] * torch.eye(1, s.group.algebra_dim, dtype=s.dtype))
    votes = s.group.compose(s.element(1), circle)
    noise = 10 * torch.finfo(s.dtype).eps * s.normal(6, s.group.dim) * votes.abs().max()
    weights = torch.ones(*s.shape, 6, dtype=s.dtype)
    change = (s.group.mean(votes + noise, weights) - s.group.mean(votes, weights)).abs().max()
    return _unless(change < 1e5 * noise.abs().max())


def presence_is_left_invariant(s: Sample) -> float:
    """presence(g ∘ p) = presence(p) = 1 for elements, and presence(0) = 0 unless 0 is an element"""
    g, p = s.element(), s.element()
    moved, still = s.group.presence(s.group.compose(g, p)), s.group.presence(p)
    zero = torch.zeros_like(p)
    told_apart = (s.group.presence(zero) == 0) | s.group.contains(zero)
    return max(relative_error(moved, still), relative_error(still, torch.ones_like(still)), _unless(told_apart.all()))


def fading_is_left_equivariant(s: Sample) -> float:
    """fade(g ∘ p, x) = g ∘ fade(p, x),  fade(p, 1) = p,  presence(fade(p, 0)) = 0 unless 0 is an element"""
    g, p = s.element(), s.element()
    x = torch.rand(s.shape, generator=s.generator, dtype=s.dtype)
    fade, compose = s.group.fade, s.group.compose
    gone = (s.group.presence(fade(p, torch.zeros_like(x))) == 0) | s.group.contains(torch.zeros_like(p))
    same = relative_error(fade(p, torch.ones_like(x)), p)
    return max(relative_error(fade(compose(g, p), x), compose(g, fade(p, x))), same, _unless(gone.all()))


def mean_passes_nan_on(s: Sample) -> float:
    """M is NaN if an element or a weight is NaN"""
    votes, weights = s.votes()
    broken_votes, broken_weights = votes.clone(), weights.clone()
    broken_votes[..., 0, :] = torch.nan
    broken_weights[..., 0] = torch.nan
    means = (s.group.mean(broken_votes, weights), s.group.mean(votes, broken_weights))
    return _unless(all(mean.isnan().any(-1).all() for mean in means))


# The distance δ.


def distance_is_left_invariant(s: Sample) -> float:
    """δ(g ∘ p, g ∘ q) = δ(p, q)"""
    g, p, q = s.element(), s.element(), s.element()
    moved = s.group.distance(s.group.compose(g, p), s.group.compose(g, q))
    return relative_error(moved, s.group.distance(p, q))


def distance_is_zero_for_equals(s: Sample) -> float:
    """δ(p, p) = 0"""
    p = s.element()
    distance = s.group.distance(p, p)
    return relative_error(distance, torch.zeros_like(distance))


def distance_separates(s: Sample) -> float:
    """δ(p, q) > 0 for p ≠ q"""
    return _unless((s.group.distance(s.element(), s.element()) > law_tolerance(s.dtype)).all())


def distance_is_symmetric(s: Sample) -> float:
    """δ(p, q) = δ(q, p)"""
    p, q = s.element(), s.element()
    return relative_error(s.group.distance(p, q), s.group.distance(q, p))


def distance_has_finite_gradients(s: Sample) -> float:
    """δ, ∂δ < ∞ at p = q, at p ≠ q, at p = q exp(1e-30 a) and from the undefined pose"""
    p, q = s.element(), s.element()
    near = s.group.compose(q, s.group.exp(1e-30 * s.normal(*s.shape, s.group.algebra_dim)))
    return max(_gradient(s.group.distance, first, q) for first in (q, p, near, torch.zeros_like(p)))


def _gradient(function: Callable[..., Tensor], *inputs: Tensor) -> float:
    """0 if value and gradient of ``function`` are finite, else 1."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    value = function(*leaves)
    # Autograd gives None where the value does not depend on an input; that is a derivative of zero.
    gradients = torch.autograd.grad(value.sum(), leaves, allow_unused=True)
    return _unless(value.isfinite().all() and all(g is None or g.isfinite().all() for g in gradients))


LawFunction = Callable[[Sample], float]

GROUP_LAWS: tuple[LawFunction, ...] = (
    composition_is_associative,
    identity_is_neutral,
    inverse_undoes,
    group_is_closed,
    action_follows_composition,
    action_moves_points,
    exp_starts_at_identity,
    exp_is_a_one_parameter_group,
    log_inverts_exp,
    exp_and_log_have_finite_gradients_at_identity,
    batches_broadcast,
    sampler_is_seeded_and_varied,
)
MEAN_LAWS: tuple[LawFunction, ...] = (
    mean_is_left_equivariant,
    mean_ignores_order,
    mean_is_closed,
    mean_of_equal_elements_is_the_element,
    mean_follows_weights,
    mean_survives_extreme_weights,
    mean_without_evidence_is_zero,
    mean_has_finite_gradients,
    mean_is_steady,
    mean_passes_nan_on,
    presence_is_left_invariant,
    fading_is_left_equivariant,
)
DISTANCE_LAWS: tuple[LawFunction, ...] = (
    distance_is_left_invariant,
    distance_is_zero_for_equals,
    distance_separates,
    distance_is_symmetric,
    distance_has_finite_gradients,
)
