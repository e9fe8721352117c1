"""The network class for points: presets, checks, export."""

import copy

import pytest
import torch

from equicaps.data import solid_shapes
from equicaps.models import POINT_PRESETS, PointArchitecture, PointCapsNet

pytestmark = pytest.mark.parametrize("preset", POINT_PRESETS)


def test_presets_map_clouds_to_class_capsules(preset):
    network = PointCapsNet.from_preset(preset, num_classes=4)
    output = network(solid_shapes(6).sample(200)[:3])
    assert output.scores.shape == output.activations.shape == (3, 4)
    assert output.poses.shape == (3, 4, 9)
    assert (output.activations >= 0).all()
    assert (output.activations <= 1).all()
    assert network.parameter_counts() == (sum(p.numel() for p in network.parameters()), 0)
    assert len(network.capsules(solid_shapes(6).sample(200)[:3])) > 2


def test_the_same_seed_builds_the_same_network(preset):
    one, same, other = (PointArchitecture(preset).build(seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.usefixtures("without_shape_checks")
def test_mistakes_are_explained(preset):
    network = PointCapsNet.from_preset(preset)
    with pytest.raises(ValueError, match=r"\(batch, n, 3\)"):
        network(torch.rand(10, 3))
    with pytest.raises(ValueError, match="at least one point"):
        network(torch.rand(2, 0, 3))
    with pytest.raises(ValueError, match=r"\(2, 10\)"):
        network(torch.rand(2, 10, 3), torch.ones(2, 9))
    with pytest.raises(TypeError, match="one dtype"):
        network(torch.rand(2, 10, 3).double())
    with pytest.raises(TypeError, match="float32 or float64"):
        network(torch.ones(2, 10, 3, dtype=torch.int64))
    with pytest.raises(ValueError, match="'points', 'points-paper'"):
        PointCapsNet.from_preset(preset + "s")


def test_autocast_does_not_reach_it(preset):
    """Otherwise rotations would change scores by the rounding of 16 bits; it trains, too."""
    network, clouds = PointCapsNet.from_preset(preset), solid_shapes(6).sample(200)
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16, "the control: autocast is on"
        output = network(clouds)
    output.scores.square().mean().backward()
    assert output.scores.dtype == output.poses.dtype == torch.float32
    network.eval()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        lower = network(clouds).scores
    with torch.no_grad():
        assert torch.equal(lower, network(clouds).scores)


def test_a_common_factor_of_the_weights_does_not_matter(preset):
    network, clouds = PointCapsNet.from_preset(preset).eval(), solid_shapes(6).sample(300)
    weights = torch.rand(clouds.shape[:2])
    with torch.no_grad():
        scores, other = (
            network(clouds, weights).scores,
            network(clouds, 4 * weights / weights.amax(1, keepdim=True)).scores,
        )
    torch.testing.assert_close(other, network(clouds, weights / weights.amax(1, keepdim=True)).scores)
    assert scores.isfinite().all()


def test_padding_changes_nothing_in_training_either(preset):
    """Of 40 points, fewer than there are centres, padded to 340: padding is not in the statistics of batches."""
    torch.manual_seed(0)
    network, clouds = PointCapsNet.from_preset(preset), solid_shapes(6).sample(40)
    padded = torch.cat((clouds, clouds.new_zeros(6, 300, 3)), 1)
    weights = torch.cat((clouds.new_ones(6, 40), clouds.new_zeros(6, 300)), 1)
    other = copy.deepcopy(network)
    torch.testing.assert_close(other(padded, weights).scores, network(clouds).scores, rtol=0, atol=1e-3)
    for name, value in network.state_dict().items():
        torch.testing.assert_close(other.state_dict()[name], value, rtol=1e-3, atol=1e-4)


def test_an_empty_batch_has_empty_answers(preset):
    assert PointCapsNet.from_preset(preset).eval()(torch.zeros(0, 300, 3)).scores.shape == (0, 10)
