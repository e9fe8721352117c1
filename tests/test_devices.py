"""No tensor is made on the wrong device: everything runs on the device ``meta``, where tensors of the CPU cannot go.

That needs no GPU. Values do not exist there, so nothing is said about them.
"""

import pytest
import torch
from oracles import ALL_GROUPS
from torch.fx.experimental import _config as torch_config

from equicaps.functional import Capsules, PointPoses, route
from equicaps.groups import SO2, SO3, Group
from equicaps.models import PRESETS, GroupCapsNet
from equicaps.nn import (
    GroupCapsules,
    HarmonicKernel,
    ImagePoses,
    PointCapsules,
    PointConv,
    PointFrames,
    PoseConv2d,
    SpatialCapsules2d,
    SplineKernel,
    SteerableCapsules2d,
)


@pytest.fixture(autouse=True)
def _count_everything():
    """Without values nobody knows how many are not zero: all of them."""
    with torch_config.patch(meta_nonzero_assume_all_nonzero=True):
        yield


def meta(*shape):
    return torch.empty(*shape, device="meta")


def stays(*results):
    """Whether all tensors are where they should be, after a backward pass if they have gradients."""
    found = [result for result in results if isinstance(result, torch.Tensor)]
    total = [result.sum() for result in found if result.requires_grad]
    if total:
        sum(total[1:], total[0]).backward()
    return bool(found) and all(result.is_meta for result in found)


OPERATIONS = {
    "identity": lambda group, g, w: group.identity(3, device="meta"),
    "compose": lambda group, g, w: group.compose(g, g),
    "inverse": lambda group, g, w: group.inverse(g),
    "act": lambda group, g, w: group.act(g, meta(3, 5, group.point_dim)),
    "mean": lambda group, g, w: group.mean(g, w),
    "distance": lambda group, g, w: group.distance(g, meta(3, 5, group.dim)),
    "exp": lambda group, g, w: group.exp(meta(3, group.algebra_dim).requires_grad_()),
    "log": lambda group, g, w: group.log(g),
    "random": lambda group, g, w: group.random(3, device="meta"),
    "contains": lambda group, g, w: group.contains(g),
    "presence": lambda group, g, w: group.presence(g),
    "fade": lambda group, g, w: group.fade(g, w),
    "route": lambda group, g, w: torch.cat([part.flatten() for part in route(group, g, w[0])]),
}


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_groups(group, operation):
    assert stays(OPERATIONS[operation](group, meta(3, 5, group.dim).requires_grad_(), meta(3, 5).requires_grad_()))


def test_every_operation_of_a_group_is_tried():
    assert Group.__abstractmethods__ <= OPERATIONS.keys()


LAYERS = {
    "GroupCapsules": lambda: GroupCapsules(SO3(), 5, 4)(meta(2, 5, 9), meta(2, 5)),
    "ImagePoses": lambda: ImagePoses()(meta(2, 1, 16, 16)),
    "SpatialCapsules2d": lambda: SpatialCapsules2d(SO2(), 3, 4)(Capsules(meta(2, 3, 8, 8, 2), meta(2, 3, 8, 8))),
    "SteerableCapsules2d": lambda: SteerableCapsules2d(3, 4, 3)(Capsules(meta(2, 3, 8, 8, 2), meta(2, 3, 8, 8))),
    "PointCapsules": lambda: PointCapsules(SO3(), 3, 4, radius=1.0)(
        meta(2, 20, 3), PointPoses(meta(2, 20, 3, 9), meta(2, 20, 3)), meta(2, 5, 3)
    ),
    "PointConv": lambda: (
        PointConv(3, 4, radius=1.0)(
            meta(2, 20, 3), meta(2, 20, 3), meta(2, 5, 3), PointPoses(meta(2, 5, 4, 9), meta(2, 5, 4))
        ),
    ),
    "PointFrames": lambda: PointFrames(0.5)(meta(2, 20, 3)),
    "PoseConv2d, spline": lambda: (PoseConv2d(3, 4, 3, kernel=SplineKernel())(meta(2, 3, 8, 8), meta(2, 4, 6, 6, 2)),),
    "PoseConv2d, harmonic": lambda: (
        PoseConv2d(3, 4, 3, kernel=HarmonicKernel())(meta(2, 3, 8, 8), meta(2, 4, 6, 6, 2)),
    ),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_layers(layer):
    with torch.device("meta"):
        assert stays(*LAYERS[layer]())


@pytest.mark.parametrize(("preset", "decoder"), [*((name, False) for name in PRESETS), ("steerable", True)])
def test_networks(preset, decoder):
    """Built on the CPU, as users do, and moved; in training with the loss, and afterwards."""
    network = GroupCapsNet.from_preset(preset, decoder=decoder).to("meta")
    output = network(meta(2, 1, 32, 32))
    assert stays(*output)
    assert stays(*network.eval()(meta(2, 1, 32, 32)))
    assert all(parameter.grad is None or parameter.grad.is_meta for parameter in network.parameters())


class Stray(SO2):
    """A group that forgets the device."""

    def identity(self, *shape, dtype=None, device=None):
        return SO2.identity(self, *shape, dtype=dtype)

    def mean(self, elements, weights):
        return SO2.mean(self, elements + torch.zeros(2), weights)


def test_that_a_stray_tensor_is_noticed():
    """Control: a tensor of the CPU fails, or is found in the result."""
    assert not stays(Stray().identity(3, device="meta"))
    with pytest.raises(RuntimeError, match="device"):
        Stray().mean(meta(3, 5, 2), meta(3, 5))
