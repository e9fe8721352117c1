"""The network class for points: presets, checks, export."""

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
