"""Answers about shapes: the same rotation in every form."""

import json
import math
from dataclasses import replace

import pytest
import roma
import torch
from small_shapes import SOLIDS, point_model

from equicaps.inference.point_prediction import PointPrediction, format_rotation


@pytest.fixture(scope="module")
def found():
    """Four answers, the second without a rotation."""
    prediction = point_model().predict(SOLIDS.sample(300)[:4])
    rotations = prediction.rotations.clone()
    rotations[1] = torch.nan
    return replace(prediction, rotations=rotations, angle_error=torch.tensor([3.0, torch.nan, 4.0, 5.0]))


def test_every_form_is_the_same_rotation(found):
    defined = [0, 2, 3]
    for matrices in (
        roma.unitquat_to_rotmat(found.quaternions[defined]),
        roma.rotvec_to_rotmat(found.rotation_vectors[defined]),
    ):
        torch.testing.assert_close(matrices, found.rotations[defined], rtol=0, atol=1e-5)
    assert found.quaternions[1].isnan().all()
    assert found.rotation_vectors[1].isnan().all()
    assert found.quaternions.shape == (4, 4)


def test_a_known_rotation_is_told_as_people_say_it(found):
    """A quarter turn about the third axis."""
    quarter = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    [answer] = PointPrediction(
        found.labels[:1], found.confidence[:1], quarter[None], found.output.map(lambda values: values[:1]),
        found.classes,
    )  # fmt: skip
    assert answer.angle == pytest.approx(90, abs=1e-3)
    assert answer.rotation_vector_degrees == pytest.approx((0, 0, 90), abs=1e-3)
    assert answer.rotation == tuple(map(tuple, quarter.tolist()))
    assert answer.angle_error is None
    assert format_rotation(answer) == "90.0° about (+0.00, +0.00, +1.00)"
    assert format_rotation(replace(answer, angle=0.0, rotation_vector_degrees=(0.0, 0.0, 0.0))) == "0.0°"


def test_answers_are_those_of_the_batch(found):
    answers = list(found)
    assert [answer.label for answer in answers] == found.names
    assert [answer.angle_error for answer in answers] == [3.0, None, 4.0, 5.0]
    assert answers[1].rotation is answers[1].rotation_vector_degrees is answers[1].angle is None
    assert format_rotation(answers[1]) == "–"
    assert "±3°" in format_rotation(answers[0])
    for answer in answers:
        assert answer.scores[answer.label] == max(answer.scores.values())
        assert answer.agreements[answer.agreed_label] == answer.agreement == max(answer.agreements.values())
    assert all(0 <= answer.angle <= 180 for answer in answers if answer.angle is not None)
    assert not any(math.isnan(answer.confidence) for answer in answers)


def test_json_can_hold_it(found):
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert plain["classes"] == list(SOLIDS.classes)
    assert plain["answers"][1]["rotation"] is None
    assert plain["answers"][0]["rotation"] == found.rotations[0].tolist()


def test_the_repr_is_short(found):
    assert repr(found).startswith(f"PointPrediction({found.names[0]} (")
    many = replace(found, labels=found.labels.repeat(3), confidence=found.confidence.repeat(3),
                   rotations=found.rotations.repeat(3, 1, 1), angle_error=None,
                   output=found.output.map(lambda values: torch.cat((values, values, values))))  # fmt: skip
    assert repr(many).endswith("... 6 more)")
