"""Coarse points do not depend on rotations, on the order of points, or on rounding."""

import pytest
import torch

from equicaps.functional.point_choice import OTHER_WAVES, choose, choose_points, point_invariants
from equicaps.groups import SO3


def cloud(dtype=torch.float32, points=200):
    x = torch.randn(3, points, 3, dtype=dtype) * torch.tensor([1.0, 0.7, 0.4], dtype=dtype)
    return x - x.mean(1, keepdim=True)


def by_point(choice, count):
    """The weight of every point, 0 of those that are not chosen."""
    return choice.weights.new_zeros(len(choice.weights), count).scatter(1, choice.indices, choice.weights)


def test_the_same_points_are_chosen_from_a_rotated_cloud_in_another_order(dtype):
    x, w = cloud(dtype), torch.ones(3, 200, dtype=dtype)
    order = torch.randperm(200)
    rotated = SO3().act(SO3().random(dtype=dtype), x)[:, order]
    before = by_point(choose_points(x, w, 50), 200)
    after = by_point(choose_points(rotated, w, 50), 200)
    near = {"rtol": 0, "atol": 1e-4 if dtype == torch.float32 else 1e-10}
    torch.testing.assert_close(after, before[:, order], **near)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after, before, **near)


def test_weights_fall_to_zero_at_the_cut_and_reach_one():
    choice = choose_points(cloud(), torch.ones(3, 200), 50)
    assert choice.indices.shape == choice.weights.shape == (3, 50)
    assert all(len(set(row)) == 50 for row in choice.indices.tolist())
    assert choice.weights.min() >= 0
    assert (choice.weights[:, -1] < 0.05).all()
    assert (choice.weights[:, 0] > 0.9).all()


def test_a_point_that_leaves_the_choice_does_so_without_a_jump():
    """The weights of all points are continuous in a point that moves far enough to be chosen, and not, in turn."""
    x, w = cloud(torch.float64, 40)[:1], torch.ones(1, 40, dtype=torch.float64)
    steps = torch.linspace(0, 0.4, 4001, dtype=torch.float64)
    moved = x.repeat(len(steps), 1, 1)
    moved[:, 0, 0] += steps
    weights = by_point(choose_points(moved, w.expand(len(steps), -1), 10), 40)
    assert weights.diff(dim=0).abs().max() < 0.05
    chosen = weights[:, 0] > 0
    assert chosen.any()
    assert not chosen.all()
    indices = choose_points(moved, w.expand(len(steps), -1), 10).indices
    flags = torch.zeros(len(steps), 40).scatter(1, indices, 1.0)
    assert flags.diff(dim=0).abs().max() == 1  # control: whether a point is chosen does jump


def test_padding_is_never_chosen():
    x, w = cloud(), torch.ones(3, 200)
    w[:, 100:] = 0
    weights = by_point(choose_points(x, w, 50), 200)
    assert (weights[:, 100:] == 0).all()
    torch.testing.assert_close(weights[:, :100], by_point(choose_points(x[:, :100], w[:, :100], 50), 100))


def test_padding_does_not_fade_a_cloud_that_is_chosen_as_a_whole():
    x, w = cloud(), torch.rand(3, 200)
    w[:, 30:] = 0
    torch.testing.assert_close(by_point(choose_points(x, w, 50), 200), w)


def test_few_points_are_all_chosen():
    x, w = cloud(points=5), torch.rand(3, 5)
    choice = choose_points(x, w, 50)
    assert choice.indices.tolist() == [[0, 1, 2, 3, 4]] * 3
    assert choice.weights is w


def test_a_choice_among_chosen_points_takes_others_than_the_best():
    x, w = cloud(points=400), torch.ones(3, 400)
    invariants = point_invariants(x, w)
    first = choose(invariants, w, 100)
    second = choose(OTHER_WAVES * invariants.gather(1, first.indices), first.weights, 25)
    assert (second.indices >= 25).float().mean() > 0.25
    assert (second.weights <= first.weights.gather(1, second.indices)).all()


@pytest.mark.parametrize("points", [torch.zeros(1, 60, 3), torch.ones(1, 60, 3)])
def test_clouds_without_extent_have_finite_choices(points):
    choice = choose_points(points, torch.ones(1, 60), 10)
    assert choice.weights.isfinite().all()
