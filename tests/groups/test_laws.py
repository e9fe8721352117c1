# ruff: noqa: E501 - the table of broken groups reads better in single lines
"""Every law on every group, and controls: broken groups that the same check must reject."""

import time

import pytest
import torch
from oracles import ALL_GROUPS

from equicaps.groups import GL, SE2, SE3, SO2, SO3, Product, Scale, Translation
from equicaps.testing import LawViolationError, check_distance, check_group, check_mean


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_every_law_holds(group):
    """check_group raises unless all promised laws hold in both dtypes and all batch shapes."""
    report = check_group(group, seed=1)
    assert report.ok
    assert len(report.laws) == 29


def test_checking_all_eight_groups_takes_under_20_cpu_seconds():
    start = time.process_time()
    for group in (SO2(), SO3(), Translation(3), GL(3), SE2(), SE3(), Scale(), Product(SO2(), Translation(2))):
        assert check_group(group).ok
    assert time.process_time() - start < 20


def broken(base, **methods):
    """A subclass of ``base`` with the given methods replaced by wrong ones."""
    return type(f"Broken{base.__name__}", (base,), methods)


def sloppy_total(elements, weights):
    return (elements * weights.unsqueeze(-1)).sum(-2)


def svd_mean(self, elements, weights):
    U, _, Vh = torch.linalg.svd(sloppy_total(elements, weights).unflatten(-1, (3, 3)))
    sign = torch.linalg.det(U @ Vh)[..., None, None] * torch.tensor([0.0, 0, 1]) + torch.tensor([1.0, 1, 0])
    return ((U * sign) @ Vh).flatten(-2) * (weights.abs().sum(-1, keepdim=True) > 0)


BROKEN = {
    "composition_is_associative": broken(Translation, compose=lambda self, g, h: g + 2 * h)(2),
    "identity_is_neutral": broken(Scale, identity=lambda self, *shape, dtype=None, device=None: 2 * torch.ones(*shape, 1, dtype=dtype))(),
    "inverse_undoes": broken(Scale, inverse=lambda self, g: -g)(),
    "group_is_closed": broken(SO2, contains=lambda self, g: g[..., 0] > 0)(),
    "action_follows_composition": broken(SO3, compose=lambda self, g, h: SO3.compose(self, h, g))(),
    "action_moves_points": broken(SO2, act=lambda self, g, points: points + 0 * g)(),
    "exp_starts_at_identity": broken(Translation, exp=lambda self, algebra: algebra + 1)(2),
    "exp_is_a_one_parameter_group": broken(SE2, exp=lambda self, algebra: torch.cat((SO2().exp(algebra[..., :1]), algebra[..., 1:]), -1))(),
    "log_inverts_exp": broken(SO2, log=lambda self, g: g[..., 1:])(),
    "exp_and_log_have_finite_gradients_at_identity": broken(Scale, log=lambda self, g: g.log() + (g - 1).abs().sqrt() * 0)(),
    "batches_broadcast": broken(SO2, distance=lambda self, g, h: SO2.distance(self, g, h).double())(),
    "sampler_is_seeded_and_varied": broken(SO2, random=lambda self, *shape, generator=None, dtype=None, device=None: SO2().exp(torch.ones(*shape, 1, dtype=dtype)))(),
    "mean_is_left_equivariant": broken(SO2, mean=lambda self, elements, weights: SO2.mean(self, elements + 0.1, weights))(),
    "mean_ignores_order": broken(SO2, mean=lambda self, elements, weights: elements[..., 0, :] * (weights.sum(-1, keepdim=True) > 0))(),
    "mean_is_closed": broken(SO2, mean=lambda self, elements, weights: Translation(2).mean(elements, weights))(),
    "mean_of_equal_elements_is_the_element": broken(Translation, mean=lambda self, elements, weights: sloppy_total(elements, weights))(2),
    "mean_follows_weights": broken(SO2, mean=lambda self, elements, weights: SO2.mean(self, elements, torch.ones_like(weights)))(),
    "mean_survives_extreme_weights": broken(SO2, mean=lambda self, elements, weights: SO2.mean(self, elements, weights.square().clamp(min=1e-20).sqrt()))(),
    "mean_without_evidence_is_zero": broken(SO2, mean=lambda self, elements, weights: SO2.mean(self, elements, weights + 1e-6))(),
    "mean_has_finite_gradients": broken(SO3, mean=svd_mean)(),
    "mean_is_steady": broken(SO2, mean=lambda self, elements, weights: torch.nn.functional.normalize(sloppy_total(elements, weights), dim=-1, eps=1e-30))(),
    "mean_passes_nan_on": broken(SO2, mean=lambda self, elements, weights: SO2.mean(self, elements.nan_to_num(), weights.nan_to_num()))(),
    "presence_is_left_invariant": broken(SO2, presence=lambda self, g: g[..., 0].abs())(),
    "fading_is_left_equivariant": broken(Translation, fade=lambda self, g, presence: g * presence.unsqueeze(-1))(2),
    "distance_is_left_invariant": broken(GL, distance=lambda self, g, h: torch.linalg.vector_norm(g - h, dim=-1))(2),
    "distance_is_zero_for_equals": broken(SO2, distance=lambda self, g, h: -(g * h).sum(-1))(),
    "distance_separates": broken(SO2, distance=lambda self, g, h: 0 * (g * h).sum(-1))(),
    "distance_is_symmetric": broken(SO2, distance=lambda self, g, h: SO2.distance(self, g, h) * (1 + (g[..., 0] * h[..., 1] - g[..., 1] * h[..., 0]) / 2))(),
    "distance_has_finite_gradients": broken(Translation, distance=lambda self, g, h: (g - h).square().sum(-1).sqrt())(2),
}  # fmt: skip


@pytest.mark.parametrize("law", BROKEN)
def test_a_broken_group_is_refused_with_the_law_it_breaks(law):
    """Control: each law can fail, and the report names it."""
    with pytest.raises(LawViolationError) as caught:
        check_group(BROKEN[law])
    failed = [line.split()[1] for line in str(caught.value).splitlines() if line.startswith("  FAIL")]
    assert law in failed


def test_every_law_has_its_broken_group():
    assert set(BROKEN) == {law.name for law in check_group(SO2()).laws}


def test_a_direct_product_is_not_se2():
    """Control: the action reveals a composition whose rotations do not rotate translations."""
    direct = broken(
        SE2, compose=lambda self, g, h: torch.cat((SO2().compose(g[..., :2], h[..., :2]), g[..., 2:] + h[..., 2:]), -1)
    )
    with pytest.raises(LawViolationError, match="FAIL action_follows_composition"):
        check_group(direct())


def test_a_distance_with_a_spare_axis_is_refused():
    spare = broken(SO2, distance=lambda self, g, h: SO2.distance(self, g, h).unsqueeze(-1))
    with pytest.raises(LawViolationError, match="FAIL batches_broadcast"):
        check_group(spare())


@pytest.mark.usefixtures("without_shape_checks")
def test_a_class_instead_of_an_instance_is_explained():
    with pytest.raises(TypeError, match=r"an instance such as SO2\(\)"):
        check_group(SO2)


def test_parameter_names_are_free():
    """A user may call the arguments of a group's methods what they like."""
    renamed = broken(
        SO2, mean=lambda self, votes, w: SO2.mean(self, votes, w), act=lambda self, g, x: SO2.act(self, g, x)
    )
    assert check_group(renamed()).ok


class Raising(SO2):
    def log(self, g):
        raise RuntimeError("not written yet")


def test_report_carries_what_a_group_raised():
    with pytest.raises(LawViolationError, match=r"RuntimeError for batch shape .*not written yet"):
        check_group(Raising())


def test_partial_checks_test_only_their_laws():
    assert {law.name.split("_")[0] for law in check_mean(SO2()).laws} == {"mean", "presence", "fading"}
    assert {law.name.split("_")[0] for law in check_distance(SO2()).laws} == {"distance"}
    with pytest.raises(LawViolationError):
        check_distance(BROKEN["distance_separates"])
    assert check_mean(BROKEN["distance_separates"]).ok


def test_a_law_that_is_not_promised_does_not_fail_the_check():
    report = check_group(GL(2))
    symmetric = next(law for law in report.laws if law.name == "distance_is_symmetric")
    assert not symmetric.holds
    assert not symmetric.promised
    assert "not promised by this group" in str(report)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_groups_compare_by_value(group):
    assert group == group
    assert hash(group) == hash(group)
    assert sum(group == other for other in ALL_GROUPS) == 1
