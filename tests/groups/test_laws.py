"""Every law on every group, and controls: broken groups that the same check must refuse."""

import time

import pytest
import torch
from oracles import ALL_GROUPS

from equicaps.groups import GL, SE2, SE3, SO2, SO3, Group, Product, Scale, Translation
from equicaps.testing import LawViolationError, check_distance, check_group, check_mean


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_every_law_holds(group):
    """check_group raises unless all promised laws hold in both dtypes and all batch shapes."""
    report = check_group(group, seed=1)
    assert report.ok
    assert len(report.laws) == 25


def test_checking_all_eight_groups_takes_under_20_cpu_seconds():
    start = time.process_time()
    for group in (SO2(), SO3(), Translation(3), GL(3), SE2(), SE3(), Scale(), Product(SO2(), Translation(2))):
        assert check_group(group).ok
    assert time.process_time() - start < 20


class DirectSE2(SE2):
    """Rotations that do not turn translations."""

    def compose(self, g, h):
        return torch.cat((self.rotations.compose(g[..., :2], h[..., :2]), g[..., 2:] + h[..., 2:]), dim=-1)


class ReversedSO3(SO3):
    """g applied first, in a group where the order matters."""

    def compose(self, g, h):
        return SO3.compose(self, h, g)


class SumInsteadOfMean(Translation):
    def mean(self, elements, weights):
        return (elements * weights.unsqueeze(-1)).sum(-2)


class MeanOfTheFirst(SO2):
    def mean(self, elements, weights):
        return elements[..., 0, :] * (weights.sum(-1, keepdim=True) > 0)


class MeanOffTheCircle(SO2):
    def mean(self, elements, weights):
        return Translation(2).mean(elements, weights)


class EuclideanGL(GL):
    """A symmetric distance that g does not preserve."""

    def distance(self, g, h):
        return torch.linalg.vector_norm(g - h, dim=-1)


class ConstantDistance(SO2):
    def distance(self, g, h):
        return 0 * (g * h).sum(-1)


class NoInverse(Scale):
    def inverse(self, g):
        return -g


class NanWhenVotesAgree(SO2):
    def mean(self, elements, weights):
        total = (elements * weights.unsqueeze(-1)).sum(-2)
        return total / torch.linalg.vector_norm(total, dim=-1, keepdim=True)


class Swallowing(SO2):
    """Turns NaN into a plausible pose."""

    def mean(self, elements, weights):
        return SO2.mean(self, elements.nan_to_num(), weights.nan_to_num())


class Raising(SO2):
    def log(self, g):
        raise RuntimeError("not written yet")


@pytest.mark.parametrize(
    ("group", "law"),
    [
        (DirectSE2(), "action_follows_composition"),
        (ReversedSO3(), "action_follows_composition"),
        (SumInsteadOfMean(2), "mean_of_equal_elements_is_the_element"),
        (MeanOfTheFirst(), "mean_ignores_order"),
        (MeanOffTheCircle(), "mean_is_closed"),
        (EuclideanGL(2), "distance_is_left_invariant"),
        (ConstantDistance(), "distance_separates"),
        (NoInverse(), "inverse_undoes"),
        (NanWhenVotesAgree(), "mean_without_evidence_is_zero"),
        (Swallowing(), "mean_passes_nan_on"),
        (Raising(), "log_inverts_exp"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Group) else "",
)
def test_a_broken_group_is_refused_with_the_law_it_breaks(group, law):
    """Control: each law can fail, and the report names it and by how much."""
    with pytest.raises(LawViolationError) as caught:
        check_group(group)
    failed = [line.split()[1] for line in str(caught.value).splitlines() if line.startswith("  FAIL")]
    assert law in failed


def test_report_carries_what_a_group_raised():
    with pytest.raises(LawViolationError, match=r"RuntimeError for batch shape .*not written yet"):
        check_group(Raising())


def test_partial_checks_see_only_their_laws():
    assert {law.name.split("_")[0] for law in check_mean(SO2()).laws} == {"mean"}
    assert {law.name.split("_")[0] for law in check_distance(SO2()).laws} == {"distance"}
    with pytest.raises(LawViolationError):
        check_distance(ConstantDistance())
    assert check_mean(ConstantDistance()).ok


def test_a_law_that_is_not_promised_does_not_fail_the_check():
    report = check_group(GL(2))
    symmetric = next(law for law in report.laws if law.name == "distance_is_symmetric")
    assert not symmetric.holds
    assert not symmetric.promised
    assert "not promised by this group" in str(report)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_groups_compare_by_what_they_are(group):
    assert group == group
    assert hash(group) == hash(group)
    assert sum(group == other for other in ALL_GROUPS) == 1
