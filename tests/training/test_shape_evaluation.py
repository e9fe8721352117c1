"""Accuracy and pose error under random rotations, of networks whose answers are known."""

import math

import pytest
import torch
from torch import nn

from equicaps.data import Cloud, Shapes, Surfaces, solid_shapes
from equicaps.groups import SO3
from equicaps.metrics import PosePairs, rotation_errors, vertical_errors
from equicaps.models.output import CapsOutput
from equicaps.training.shape_evaluation import AnyRotation


class Oracle(nn.Module):
    """Knows the classes, in order, and gives poses that rotate with the cloud, off by a fixed angle in each view."""

    def __init__(self, labels, degrees, wrong=0):
        super().__init__()
        self.labels, self.wrong, self.calls = labels, wrong, 0
        self.off = SO3().exp(torch.deg2rad(torch.tensor([[0.0, 0.0, 0.0], [0.0, 0.0, degrees]])))
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, points, weights):
        count = len(points)
        scores = nn.functional.one_hot(self.labels, 8).float()
        scores[: self.wrong] = scores[: self.wrong].roll(1, -1)
        a, b = points[:, 0], points[:, 1]  # the first two points are not sampled but fixed
        e1 = a / a.norm(dim=-1, keepdim=True)
        e2 = b - (b * e1).sum(-1, keepdim=True) * e1
        e2 = e2 / e2.norm(dim=-1, keepdim=True)
        poses = torch.stack((e1, e2, torch.linalg.cross(e1, e2)), -1).flatten(-2)
        poses = SO3().compose(poses, self.off[self.calls % 2])
        self.calls += 1
        return CapsOutput(scores, scores, poses.unsqueeze(1).expand(count, 8, 9))


class Marked:
    """Surfaces whose samples begin with two fixed points."""

    def __init__(self, surface):
        self.surface = surface

    def sample(self, count, generator):
        points = self.surface.sample(count, generator)
        points[0], points[1] = torch.tensor([1.0, 0, 0]), torch.tensor([0.3, 1.0, 0])
        return points

    def tobytes(self):
        return self.surface.tobytes()


@pytest.fixture
def shapes():
    found = solid_shapes(12)
    return type(found)(found.name, type(found.surfaces)(map(Marked, found.surfaces)), found.labels, found.classes)


@pytest.mark.parametrize("degrees", [0.0, 25.0])
def test_the_pose_error_is_the_angle_between_predicted_and_true_relative_rotation(shapes, degrees):
    figures = AnyRotation(shapes, points=20)(Oracle(shapes.labels, degrees))
    assert figures["accuracy"] == 100
    assert figures["images"] == figures["pose_shapes"] == 12
    assert figures["pose_error_mean"] == pytest.approx(degrees, abs=0.05)


def test_wrong_classes_count_in_the_accuracy_and_not_in_the_pose_error(shapes):
    figures = AnyRotation(shapes, points=20, confusion=True)(Oracle(shapes.labels, 10.0, wrong=3))
    assert figures["accuracy"] == 75
    assert figures["pose_shapes"] == 9
    assert sum(map(sum, figures["confusion"])) == 12


class Echo(nn.Module):
    """Is right about every class, gives no pose, and notes how many points each cloud has."""

    def __init__(self, labels):
        super().__init__()
        self.labels, self.seen = labels, []
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, points, weights):
        self.seen.append(weights.sum(1).tolist())
        scores = nn.functional.one_hot(self.labels, 5).float()
        return CapsOutput(scores, scores, torch.zeros(len(points), 5, 9))


def test_clouds_with_few_points_count_in_the_accuracy_and_not_in_the_pose_error():
    """They have no other points, and of the same ones every rotation is exact."""
    solids = solid_shapes(4)
    clouds = [Cloud(solids.surfaces[number].sample(30, torch.Generator())) for number in range(2)]
    data = Shapes("mixed", Surfaces([*clouds, *solids.surfaces[2:]]), solids.labels, solids.classes)
    figures = AnyRotation(data, points=50)(network := Echo(data.labels))
    assert network.seen == [[30, 30, 50, 50]] * 2
    assert (figures["accuracy"], figures["pose_shapes"]) == (100, 2)
    none = AnyRotation(data.take([0, 1]), points=50)(Echo(data.labels[:2]))
    assert none["accuracy"] == 100
    assert "pose_error_median" not in none


def test_undefined_poses_count_as_180_degrees():
    some = SO3().random(3)
    pairs = PosePairs(some * torch.tensor([[1.0], [0.0], [1.0]]), some, SO3().identity(3), SO3().identity(3))
    errors = rotation_errors(pairs)
    torch.testing.assert_close(errors, torch.tensor([0.0, 180.0, 0.0]), atol=0.05, rtol=0)


def test_a_single_axis_is_no_rotation():
    """Votes that are parallel leave a matrix of rank one: an error of 180 degrees, not of 0."""
    lines = torch.zeros(2, 9)
    lines[:, 0] = 1.0
    assert (SO3().presence(lines) > 0.5).all()  # by its length it would count as a pose
    pairs = PosePairs(lines, lines.roll(3, -1), SO3().identity(2), SO3().identity(2))
    assert rotation_errors(pairs).tolist() == vertical_errors(pairs).tolist() == [180.0, 180.0]


@pytest.mark.parametrize(
    ("axis", "expected"), [((0.0, 0.0, 1.0), 0.0), ((1.0, 0.0, 0.0), 40.0), ((0.0, -1.0, 0.0), 40.0)]
)
def test_the_error_of_the_vertical_axis_ignores_rotations_around_it(axis, expected, dtype):
    """The second pose is off by 40 degrees about an axis of the shape, whatever rotations the two views have."""
    group, upright = SO3(), SO3().random(5, dtype=dtype)
    before, after = group.random(5, dtype=dtype), group.random(5, dtype=dtype)
    wrong = group.exp(torch.tensor(axis, dtype=dtype) * math.radians(40.0))
    first = group.compose(before, upright)
    second = group.compose(after, group.compose(wrong, upright))
    pairs = PosePairs(first, second, before, after)
    torch.testing.assert_close(vertical_errors(pairs), torch.full((5,), expected, dtype=dtype), atol=0.1, rtol=0)
    torch.testing.assert_close(rotation_errors(pairs), torch.full((5,), 40.0, dtype=dtype), atol=0.1, rtol=0)
