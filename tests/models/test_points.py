"""The steerable network on points: exact under every rotation, and indifferent to what should not matter."""

import functools

import pytest
import torch
from torch import nn

from equicaps.data import solid_shapes
from equicaps.groups import SO3
from equicaps.models.points import PointsConfig, PointsNet

SMALL = PointsConfig(num_classes=3, widths=(6, 8, 10), centres=(80, 30))
ROUNDING = {torch.float32: 3e-4, torch.float64: 1e-8}
"""Few centres share the rounding errors of their weights; docs/space.md has the figures of the real network."""


def clouds(dtype=torch.float32, points=300):
    return solid_shapes(6, seed=1).sample(points)[:4].to(dtype)


@functools.cache
def prepared_network(dtype):
    """With the powers and statistics of enough shapes: those of a few magnify rounding errors."""
    torch.manual_seed(0)
    network = PointsNet(SMALL).to(dtype)
    x = solid_shapes(60, seed=2).sample(300).to(dtype)
    for _ in range(20):
        network(x, torch.ones_like(x[..., 0]))
    return network.eval()


@pytest.fixture
def network(dtype):
    return prepared_network(dtype)


def test_scores_stay_and_poses_rotate_under_random_rotations(network, dtype):
    """Theorems 1 and 2, end to end, for rotations of all of SO(3), in another order of the points."""
    x = clouds(dtype)
    w, R = torch.ones_like(x[..., 0]), SO3().random(4, 1, dtype=dtype)
    order = torch.randperm(x.shape[1])
    before, after = network(x, w), network(SO3().act(R, x)[:, order], w)
    near = {"rtol": 0, "atol": ROUNDING[dtype]}
    torch.testing.assert_close(after.scores, before.scores, **near)
    torch.testing.assert_close(after.activations, before.activations, **near)
    torch.testing.assert_close(after.poses, SO3().compose(R, before.poses), **near)
    assert before.scores.std() > 0.1
    with pytest.raises(AssertionError):  # control: poses that do not move
        torch.testing.assert_close(after.poses, before.poses, **near)
    with pytest.raises(AssertionError):  # control: a mirror image is another shape
        torch.testing.assert_close(network(-x, w).scores, before.scores, **near)


@pytest.mark.parametrize("change", ["place", "size", "padding"])
def test_place_size_and_padding_do_not_matter(change, network, dtype):
    x = clouds(dtype)
    w = torch.ones_like(x[..., 0])
    other, weights = {
        "place": (x + 0.5, w),
        "size": (0.1 * x, w),
        "padding": (torch.cat((x, torch.full_like(x[:, :7], 9.0)), 1), torch.cat((w, 0 * w[:, :7]), 1)),
    }[change]
    near = {"rtol": 0, "atol": ROUNDING[dtype]}
    torch.testing.assert_close(network(other, weights).scores, network(x, w).scores, **near)


def test_padding_does_not_matter_to_fewer_points_than_centres(network, dtype):
    x = clouds(dtype)[:, :25]
    w = torch.ones_like(x[..., 0])
    longer = torch.cat((x, torch.full_like(x, 9.0), torch.full_like(x, -9.0), x), 1)
    output = network(longer, torch.cat((w, *[0 * w] * 3), 1))
    torch.testing.assert_close(output.scores, network(x, w).scores, rtol=0, atol=ROUNDING[dtype])


def test_without_scaling_the_size_matters(dtype):
    network = PointsNet(PointsConfig(3, (6, 8, 10), (40, 12), scale=False)).to(dtype).eval()
    x = clouds(dtype)
    w = torch.ones_like(x[..., 0])
    assert (network(0.5 * x, w).scores - network(x, w).scores).abs().max() > 1e-3


@pytest.mark.parametrize("points", [1, 2, 5, 40])
def test_few_points_and_none_that_counts(points, network, dtype):
    """A single point, fewer points than centres, all points alike, only padding: finite, and no pose of its own."""
    x = clouds(dtype)[:, :points]
    w = torch.ones_like(x[..., 0])
    for given, weights in ((x, w), (torch.ones_like(x), w), (x, 0 * w)):
        output = network(given, weights)
        assert all(entry.isfinite().all() for entry in output[:3])
    assert (network(torch.ones_like(x), w).activations < 1e-3).all()


def test_gradients_are_finite_also_where_poses_are_undefined(dtype):
    network = PointsNet(SMALL).to(dtype)
    x = torch.cat((clouds(dtype), torch.zeros(1, 300, 3, dtype=dtype)))
    output = network(x, torch.ones_like(x[..., 0]))
    loss = nn.functional.cross_entropy(output.scores, torch.tensor([0, 1, 2, 0, 1])) + output.poses.square().sum()
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in network.parameters())
    assert network.first.capsules.vectors.grad.abs().sum() > 0


def test_the_layers_have_the_sizes_of_the_config(network, dtype):
    x = clouds(dtype)
    layers = network.capsules(x, torch.ones_like(x[..., 0]))
    assert [tuple(layer.activations.shape[1:]) for layer in layers] == [(80, 6), (30, 8), (1, 10)]
    assert all((layer.activations >= 0).all() for layer in layers)


def test_the_flagship_has_at_most_300_000_parameters():
    assert 100_000 < sum(parameter.numel() for parameter in PointsNet(PointsConfig()).parameters()) <= 300_000
