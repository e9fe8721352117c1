"""The error of rotations is that of shapes which the network was not trained on, with the margin for their number."""

import pytest
import torch
from torch import nn

from equicaps.data import Cloud, Shapes, Surfaces, solid_shapes
from equicaps.groups import SO3
from equicaps.inference import PointCard, PointModel
from equicaps.inference.angle_error import FEWEST
from equicaps.inference.rotation_error import measure_rotation_errors
from equicaps.models import CapsOutput, PointCapsNet

SHAPES = solid_shapes(60)


class Answers(PointCapsNet):
    """Says class 0 and 1 in turns, with the poses that it was given for the first and for the second sample."""

    def __init__(self, first, second):
        nn.Module.__init__(self)
        self.given = nn.Parameter(torch.stack((first, second)), requires_grad=False)
        self.calls = 0
        self.labels_of_second = 0

    def forward(self, points, weights=None):
        poses = self.given[self.calls // len(SHAPES), self.calls % len(SHAPES) :][: len(points)]
        second = self.calls >= len(SHAPES)
        labels = (torch.arange(len(points)) + self.calls + second * self.labels_of_second) % 2
        self.calls += len(points)
        scores = torch.nn.functional.one_hot(labels, 2).float()
        return CapsOutput(scores, scores, poses.unsqueeze(1).expand(-1, 2, -1))


def model(first, second):
    uprights = tuple(tuple(row) for row in SO3().identity(2).tolist())
    return PointModel(Answers(first, second), PointCard("made", "", "", ("even", "odd"), uprights, points=8))


def rotated_by(degrees):
    """Rotations by these angles, about different axes."""
    axes = torch.nn.functional.normalize(torch.randn(len(degrees), 3), dim=-1)
    return SO3().exp(axes * torch.deg2rad(degrees).unsqueeze(-1))


def test_nine_of_ten_are_within_the_error_of_their_class():
    """Class 0 is off by 0.1 to 3 degrees, class 1 by ten times as much: ⌈31 · 0.9⌉ = 28 of 30 are below the error."""
    degrees = torch.arange(60) // 2 / 10 + 0.1
    degrees[1::2] *= 10
    found = measure_rotation_errors(model(rotated_by(degrees), rotated_by(degrees)), SHAPES, upright=True)
    assert found == pytest.approx((2.8, 28.0), abs=0.06, rel=0.02)
    within = [(degrees[label::2] <= error).double().mean() for label, error in enumerate(found)]
    assert min(within) >= 0.9


def test_without_an_upright_two_samples_are_compared():
    poses = SO3().random(60)
    away = SO3().compose(rotated_by(torch.full((60,), 5.0)), poses)
    assert measure_rotation_errors(model(poses, away), SHAPES, upright=False) == pytest.approx((5.0, 5.0), abs=0.1)
    upright = measure_rotation_errors(model(poses, away), SHAPES, upright=True)
    assert min(upright) > 90  # control: none of them stands upright


def test_shapes_without_a_pose_do_not_count():
    poses = rotated_by(torch.full((60,), 3.0))
    poses[FEWEST - 1 :] = 0
    assert measure_rotation_errors(model(poses, poses), SHAPES, upright=True) is None
    poses[FEWEST - 1] = poses[0]
    assert measure_rotation_errors(model(poses, poses), SHAPES, upright=True) == pytest.approx((3.0, 3.0), abs=0.1)


def test_a_cloud_is_not_compared_with_itself():
    """Without other points and without an upright nothing is known about the error of a cloud."""
    poses = rotated_by(torch.full((60,), 3.0))
    clouds = Surfaces(map(Cloud, SHAPES.sample(8)))
    small = Shapes("clouds", clouds, SHAPES.labels, SHAPES.classes)
    assert measure_rotation_errors(model(poses, poses), small, upright=False) is None
    assert measure_rotation_errors(model(poses, poses), small, upright=True) == pytest.approx((3.0, 3.0), abs=0.1)


def test_two_samples_with_different_classes_are_not_compared():
    """Their rotations are measured from different uprights."""
    poses = SO3().random(60)
    away = SO3().compose(rotated_by(torch.full((60,), 5.0)), poses)
    swapped = model(poses, away)
    swapped.network.labels_of_second = 1
    assert measure_rotation_errors(swapped, SHAPES, upright=False) is None
