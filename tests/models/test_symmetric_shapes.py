"""Shapes that a half turn does not change have no pose, but they do have a class."""

import math

import pytest
import torch

from equicaps.metrics import exactness
from equicaps.models import GroupCapsNet

SIDE = 32


def bar(x, y):
    return (x.abs() < 0.75) & (y.abs() < 0.3)


def zigzag(x, y):
    return ((x + 0.3).abs() < 0.45) & ((y - 0.25).abs() < 0.25) | ((x - 0.3).abs() < 0.45) & ((y + 0.25).abs() < 0.25)


def ring(x, y):
    return (torch.hypot(x, y) - 0.55).abs() < 0.2


def shapes(count, generator):
    """As many of each shape, rotated and scaled at random, drawn with 4x4 points in every pixel."""
    points = (torch.arange(4 * SIDE) + 0.5) / (2 * SIDE) - 1
    y, x = torch.meshgrid(-points, points, indexing="ij")
    images = []
    for shape in (bar, zigzag, ring):
        for angle, scale in torch.rand(count, 2, generator=generator).tolist():
            cos, sin, scale = math.cos(2 * math.pi * angle), math.sin(2 * math.pi * angle), 0.9 + 0.3 * scale
            images.append(shape((cos * x + sin * y) * scale, (cos * y - sin * x) * scale).float())
    drawn = torch.nn.functional.avg_pool2d(torch.stack(images).unsqueeze(1), 4)
    return drawn, torch.arange(3).repeat_interleave(count)


def test_shapes_that_a_half_turn_does_not_change_are_classified():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    network = GroupCapsNet.from_preset("steerable", num_classes=3)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for _ in range(40):
        images, labels = shapes(4, generator)
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(network(images).scores, labels).backward()
        optimiser.step()
    images, labels = shapes(20, generator)
    with torch.no_grad():
        output = network.eval()(images)
    assert (output.scores.argmax(1) == labels).float().mean() > 0.95
    assert output.poses.norm(dim=-1).max() < 0.5
    assert exactness(network, images).predictions_changed == 0


@pytest.mark.parametrize("name", ["capsules_only", "steerable_capsules"])
def test_presets_that_need_poses_cannot_distinguish_symmetric_shapes(name):
    """The limit of these presets: they give the same output for all such shapes, but not for shapes cut in half."""
    images, _ = shapes(2, torch.Generator().manual_seed(0))
    network = GroupCapsNet.from_preset(name, num_classes=3)
    network.train()(images)
    halves = images.clone()
    halves[..., : SIDE // 2, :] = 0
    with torch.no_grad():
        symmetric, control = (network.eval()(shown) for shown in (images, halves))
    assert symmetric.activations.max() < 1e-3 * control.activations.max()
    assert symmetric.scores.std(0).max() < 1e-3 * control.scores.std(0).max()
