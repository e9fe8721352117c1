"""The certificate of a model of shapes can fail."""

import copy
import json
import re

import pytest
import torch
from small_shapes import SOLIDS, point_model
from torch import nn

from equicaps.data import Cloud, Shapes, Surfaces
from equicaps.errors import UnansweredError, UsageError
from equicaps.inference.point_audit import audit_points


@pytest.fixture(scope="module")
def model():
    """Exact to 1e-4 is promised for trained weights; scores of untrained ones are too large for an absolute limit."""
    found = copy.deepcopy(point_model())
    with torch.no_grad():
        found.network.body.classes.norm.weight.mul_(0.02)
    return found


class Leaning(nn.Module):
    """A network that is given the clouds upright or not: it knows where up is."""

    def __init__(self, network, by):
        super().__init__()
        self.network, self.by = network, by

    def forward(self, points, weights):
        output = self.network(points, weights)
        return getattr(self, self.by)(output, points)

    def scores(self, output, points):
        return output._replace(scores=output.scores + 1e-3 * points.square().mean(1)[:, :1])

    def labels(self, output, points):
        return output._replace(scores=output.scores + 9 * points[:, :5, 2])

    def agreements(self, output, points):
        return output._replace(activations=output.activations + 1e-3 * points.square().mean(1)[:, :1])

    def poses(self, output, points):
        return output._replace(poses=output.poses.flip(-1))


def test_random_rotations_change_nothing(model):
    found = audit_points(model, SOLIDS, rotations=2)
    assert found.holds, found.failures
    assert found.exact.predictions_changed == 0
    assert 0 < found.exact.scores < 1e-4  # it rounds: 0 would mean that nothing was rotated
    assert 0 < found.exact.poses < 1e-4
    assert found.exact.poses_defined > 90
    assert (found.shapes, found.rotations) == (15, 2)
    assert 0 <= found.accuracy <= 100
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["holds"]
    assert plain["exact"]["images"] == 15
    assert audit_points(model, SOLIDS, rotations=2) == found  # seeded


def test_clouds_with_few_points_are_audited_without_repetition_and_without_a_pose_error(model):
    """The accuracy is that of predictions; the same points again say nothing about the error of poses."""
    clouds = [surface.sample(100 + number, torch.Generator()) for number, surface in enumerate(SOLIDS.surfaces)]
    data = Shapes("clouds", Surfaces(map(Cloud, clouds)), model.predict(clouds).labels, SOLIDS.classes)
    found = audit_points(model, data, rotations=1)
    assert (found.holds, found.accuracy) == (True, 100.0)
    assert found.pose_error_median is None


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("scores", "^scores change by .* under rotations"),
        ("labels", "^[0-9]+ predictions change under rotations"),
        ("agreements", "^agreements change by"),
        ("poses", "^poses change by"),
    ],
)
def test_what_is_not_exact_is_named(model, by, message):
    """Control: the same audit rejects a network in which anything depends on the rotation."""
    leaning = copy.deepcopy(model)
    leaning.network = Leaning(model.network, by)
    found = audit_points(leaning, SOLIDS, rotations=1)
    assert not found.holds
    assert any(re.search(message, failure) for failure in found.failures), found.failures


def test_shapes_of_other_classes_and_networks_that_overflow_are_refused(model):
    other = SOLIDS.take(slice(0, 4))
    with pytest.raises(UsageError, match="has the classes a, b, c, d, e, but the model knows block"):
        audit_points(model, type(other)("x", other.surfaces, other.labels, tuple("abcde")))
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.network.body.classes.norm.weight.fill_(torch.inf)
    with pytest.raises(UnansweredError, match="must be finite"):
        audit_points(broken, other)
    with pytest.raises(ValueError, match="there must be rotations and shapes, but there are 0 and 4"):
        audit_points(model, other, rotations=0)
