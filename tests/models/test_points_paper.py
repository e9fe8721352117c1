import copy

import pytest
import torch
from clouds import cloud, rotate, rotation

from equicaps.groups import SO3
from equicaps.models import PointsPaperConfig, PointsPaperNet

SMALL = PointsPaperConfig(num_classes=4, widths=(3, 4), points=(64, 24, 8), surroundings=24)
EXACT = {torch.float32: 1e-4, torch.float64: 1e-10}


@pytest.fixture
def network(dtype):
    """Calibrated, and with the statistics of one batch, as during training."""
    network = PointsPaperNet(SMALL)
    with torch.no_grad():
        network.calibrate(cloud(4, 160, dtype=torch.float32))
        network(cloud(4, 160, dtype=torch.float32))
    return network.to(dtype).eval()


def assert_same(actual, expected, poses, dtype):
    """Scores and agreements are those expected, and so are poses where they are defined."""
    defined = (SO3().presence(expected.poses) > 0.5).unsqueeze(-1)
    assert defined.any()
    limits = {"rtol": 0, "atol": EXACT[dtype]}
    torch.testing.assert_close(actual.scores, expected.scores, **limits)
    torch.testing.assert_close(actual.activations, expected.activations, **limits)
    torch.testing.assert_close(actual.poses * defined, poses * defined, rtol=0, atol=5 * EXACT[dtype])


@pytest.mark.parametrize("seed", [1, 2, 3])
@torch.no_grad()
def test_rotations_rotate_only_poses(network, seed, dtype):
    """Theorems 1, 2 and 3 end to end; the control is that poses do rotate."""
    points, R = cloud(4, 160, dtype=dtype, seed=7), rotation(dtype, seed)
    still, moved = network(points), network(rotate(R, points))
    assert_same(moved, still, SO3().compose(R, still.poses), dtype)
    with pytest.raises(AssertionError):
        assert_same(moved, still, still.poses, dtype)


@torch.no_grad()
def test_other_shapes_have_other_scores(network, dtype):
    """Control: the comparison of scores refuses another cloud, and so a mirror image."""
    points = cloud(2, 160, dtype=dtype, seed=7)
    still, mirrored = network(points), network(points * torch.tensor([-1.0, 1.0, 1.0], dtype=dtype))
    assert (network(cloud(2, 160, dtype=dtype, seed=8)).scores - still.scores).abs().max() > 1e-3
    assert (mirrored.scores - still.scores).abs().max() > 1e-3


@torch.no_grad()
def test_order_padding_place_and_size_do_not_matter(network, dtype):
    points = cloud(2, 160, dtype=dtype, seed=7)
    still = network(points)
    weights = torch.cat((torch.ones(2, 160, dtype=dtype), torch.zeros(2, 9, dtype=dtype)), 1)
    padded = torch.cat((points, torch.full((2, 9, 3), torch.nan, dtype=dtype)), 1)
    for moved in (
        network(points[:, torch.randperm(160)]), network(padded, weights), network(points + 0.5), network(4 * points)
    ):  # fmt: skip
        assert_same(moved, still, still.poses, dtype)
    more = torch.cat((points, cloud(2, 9, dtype=dtype, seed=3)), 1)
    with pytest.raises(AssertionError):
        assert_same(network(more), still, still.poses, dtype)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_degenerate_clouds_have_finite_gradients(count, dtype):
    """A single point, two points, equal points: no pose, and nothing that is not finite."""
    network = PointsPaperNet(SMALL).to(dtype)
    points = torch.full((2, count, 3), 0.3, dtype=dtype)
    if count == 2:
        points[:, 1] += 0.5
    out = network(points.requires_grad_())
    assert (out.poses == 0).all()
    assert (out.activations == 0).all()
    (out.scores.sum() + out.poses.sum() + out.activations.sum()).backward()
    assert points.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())


@torch.no_grad()
def test_padding_does_not_count_in_calibration():
    """Of 40 points, padded to 160, more than there are frames; the control is another cloud in place of the padding."""
    torch.manual_seed(0)
    points, more = cloud(4, 40, dtype=torch.float32), cloud(4, 120, dtype=torch.float32, seed=3)
    network = PointsPaperNet(SMALL)
    padded, other = copy.deepcopy(network), copy.deepcopy(network)
    network.calibrate(points)
    weights = torch.cat((torch.ones(4, 40), torch.zeros(4, 120)), 1)
    padded.calibrate(torch.cat((points, torch.zeros(4, 120, 3)), 1), weights)
    other.calibrate(torch.cat((points, more), 1))
    torch.testing.assert_close(padded.state_dict(), network.state_dict(), rtol=1e-3, atol=1e-4)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(other.state_dict(), network.state_dict(), rtol=1e-3, atol=1e-4)


def test_every_parameter_learns():
    network, points = PointsPaperNet(SMALL), cloud(4, 160, dtype=torch.float32)
    network.calibrate(points)
    out = network(points)
    (torch.nn.functional.cross_entropy(out.scores, torch.arange(4)) + out.activations.mean()).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())


def test_capsules_of_every_layer():
    network = PointsPaperNet(SMALL)
    shapes = [tuple(layer.poses.shape) for layer in network.capsules(cloud(2, 160, dtype=torch.float32))]
    assert shapes == [(2, 24, 3, 9), (2, 8, 4, 9), (2, 1, 4, 9)]


def test_layers_must_match():
    with pytest.raises(ValueError, match="make 3 layers"):
        PointsPaperConfig(points=(64, 16))
