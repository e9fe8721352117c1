import pytest
import torch

from equicaps.functional import Capsules, Routing
from equicaps.groups import SO2, SO3
from equicaps.nn import GroupCapsules
from equicaps.testing import assert_invariant, assert_left_equivariant, equivariance_error, grid_equivariance_error

group = SO3()
elements = group.random(5, generator=torch.Generator().manual_seed(0))


def test_assert_left_equivariant_accepts_right_multiplication_and_rejects_left():
    """g ∘ (p ∘ t) = (g ∘ p) ∘ t, but g ∘ (t ∘ p) ≠ t ∘ (g ∘ p)."""
    t = group.random()
    assert_left_equivariant(lambda p: group.compose(p, t), group, elements)
    with pytest.raises(AssertionError, match="relative error"):
        assert_left_equivariant(lambda p: group.compose(t, p), group, elements)


def test_assert_invariant_accepts_distances_and_rejects_coordinates():
    assert_invariant(lambda p: group.distance(p[1:], p[:-1]), group, elements)
    with pytest.raises(AssertionError, match=r"f\(g ∘ x\) = f\(x\) fails"):
        assert_invariant(lambda p: p, group, elements)


def test_assertions_that_could_not_fail_are_refused():
    """Neither an output nor elements that g does not move can violate the claim."""
    with pytest.raises(ValueError, match="does not move the output"):
        assert_left_equivariant(lambda p: torch.zeros_like(p), group, elements)
    with pytest.raises(ValueError, match="does not move the elements"):
        assert_invariant(lambda p: p, group, torch.zeros(5, 9))


def test_shapes_that_differ_are_reported():
    with pytest.raises(AssertionError, match=r"shapes \(2, 9\) and \(3, 9\) differ"):
        assert_invariant(lambda p: p[: 3 if p is elements else 2], group, elements)


def test_equivariance_error_measures_a_good_and_a_bad_layer(dtype):
    """A capsule layer is exact; one that adds a fixed vector is not; the control is large for both."""
    group = SO2()
    layer = GroupCapsules(group, 6, 3).to(dtype)
    poses, activations = group.random(8, 6, dtype=dtype), torch.rand(8, 6, dtype=dtype)

    def bad(p, a):
        poses, activations, weights = layer(p, a)
        return Routing(poses + 0.1, activations + p.sum(-1)[..., :3], weights)

    good = equivariance_error(layer, group, poses, activations)
    off = equivariance_error(bad, group, poses, activations)
    assert good.poses < 1e-5
    assert good.activations < 1e-5
    assert good.control > 0.1
    assert off.poses > 0.05
    assert off.activations > 0.1


def test_undefined_poses_are_not_counted():
    """A capsule without evidence says nothing about equivariance."""
    layer = GroupCapsules(SO2(), 4, 2)
    error = equivariance_error(layer, SO2(), SO2().random(3, 4), torch.zeros(3, 4))
    assert error == (0.0, 0.0, 0.0)


THIRTY = SO2().exp(torch.deg2rad(torch.tensor([30.0])))
GRID_LAYERS = {
    "unchanged": (lambda capsules: capsules, True, True),
    "poses turned": (
        lambda capsules: Capsules(SO2().compose(THIRTY, capsules.poses), capsules.activations),
        True,
        False,
    ),
    "moved": (lambda capsules: Capsules(*(maps.roll(1, 3) for maps in capsules)), False, False),
    "tops marked": (lambda capsules: Capsules(capsules.poses, capsules.poses[..., 1]), False, True),
}
"""Layers on a grid, and whether they commute with quarter turns and with mirroring left to right."""


@pytest.mark.parametrize(("layer", "rotates", "mirrors"), GRID_LAYERS.values(), ids=GRID_LAYERS)
def test_layers_on_a_grid_are_measured_under_quarter_turns_and_mirroring(layer, rotates, mirrors):
    capsules = Capsules(SO2().random(2, 3, 6, 4), torch.rand(2, 3, 6, 4))
    for found, holds in (
        (grid_equivariance_error(layer, capsules, 1), rotates),
        (grid_equivariance_error(layer, capsules, mirrored=True), mirrors),
        (grid_equivariance_error(layer, capsules, 3, mirrored=True), rotates and mirrors),
    ):
        assert (max(found.poses, found.activations) < 1e-5) == holds
        assert found.control > 0.1


def test_a_grid_that_is_not_moved_has_no_control():
    capsules = Capsules(SO2().random(2, 3, 6, 4), torch.rand(2, 3, 6, 4))
    assert grid_equivariance_error(lambda same: same, capsules).control < 1e-5
