"""A model of shapes: nothing but its rotations follows a rotation of space, whatever the input is."""

import copy

import pytest
import torch
from small_shapes import SOLIDS, point_model, write_off

import equicaps
from equicaps.errors import FileError, UnansweredError
from equicaps.groups import SO3
from equicaps.inference import PointCard, PointModel, PoseModel
from equicaps.inference.point_model import rotate_back

CLOUDS = SOLIDS.sample(300)
CLOSE = {"rtol": 0, "atol": 2e-4}


@pytest.fixture(scope="module")
def model():
    return point_model()


@pytest.fixture
def turn():
    found = SO3().random(len(CLOUDS), generator=torch.Generator().manual_seed(1)).unflatten(-1, (3, 3))
    assert (found - torch.eye(3)).abs().amax((1, 2)).min() > 0.1  # no identity
    return found


def test_classes_stay_and_rotations_follow_every_rotation(model, turn):
    """predict(R x) has the labels and confidences of predict(x), and rotations R ∘ rotations."""
    before, after = model.predict(CLOUDS), model.predict(CLOUDS @ turn.mT)
    assert before.names == after.names
    assert len(set(before.names)) > 2
    torch.testing.assert_close(after.confidence, before.confidence, **CLOSE)
    assert not before.rotations.isnan().any()
    torch.testing.assert_close(after.rotations, turn @ before.rotations, **CLOSE)


@pytest.mark.parametrize("claim", [lambda r, turn: r, lambda r, turn: r @ turn, lambda r, turn: turn.mT @ r])
def test_that_comparison_rejects_false_claims(model, turn, claim):
    """Control: rotations neither stay, nor follow from the right, nor by the inverse."""
    before, after = model.predict(CLOUDS), model.predict(CLOUDS @ turn.mT)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(after.rotations, claim(before.rotations, turn), **CLOSE)


def test_a_mirror_image_is_another_shape(model):
    mirrored = model.predict(CLOUDS * torch.tensor([-1.0, 1.0, 1.0]))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(mirrored.output.scores, model.predict(CLOUDS).output.scores, **CLOSE)


def test_rotations_are_rotations_from_the_upright_of_the_class(model):
    """With the pose itself as upright, the rotation is the identity."""
    found = model.predict(CLOUDS[:1])
    assert SO3().contains(found.rotations.flatten(-2)).all()
    uprights = list(model.card.uprights)
    uprights[found.labels[0]] = tuple((found.rotations[0] @ torch.tensor(
        uprights[found.labels[0]]).reshape(3, 3)).flatten().tolist())  # fmt: skip
    again = PointModel(model.network, with_uprights(model.card, uprights)).predict(CLOUDS[:1])
    torch.testing.assert_close(again.rotations[0], torch.eye(3), **CLOSE)


def with_uprights(card, uprights):
    return PointCard(card.name, card.task, card.data, card.classes, tuple(uprights), card.points)


def test_without_an_upright_or_a_pose_there_is_no_rotation(model):
    none = PointModel(model.network, with_uprights(model.card, [(0.0,) * 9] * 5)).predict(CLOUDS[:2])
    assert none.rotations.isnan().all()
    point = model.predict(torch.zeros(1, 300, 3))
    assert point.rotations.isnan().all()
    assert next(iter(point)).rotation is None


def test_order_place_and_size_of_a_cloud_do_not_matter(model):
    expected = model.predict(CLOUDS)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    for other in (CLOUDS[:, order], CLOUDS + 7.0, 0.01 * CLOUDS):
        found = model.predict(other)
        assert found.names == expected.names
        torch.testing.assert_close(found.rotations, expected.rotations, **CLOSE)


def test_clouds_of_different_sizes_have_the_answers_that_they_have_alone(model):
    clouds = [CLOUDS[0], CLOUDS[1, :70], CLOUDS[2], CLOUDS[3, :280], CLOUDS[4, :70]]
    together = model.predict(clouds, batch_size=2)
    for number, cloud in enumerate(clouds):
        alone = model.predict(cloud)
        torch.testing.assert_close(together.output.scores[number], alone.output.scores[0], **CLOSE)
        torch.testing.assert_close(together.rotations[number], alone.rotations[0], **CLOSE)
    with pytest.raises(AssertionError):  # control: the number of points does matter
        torch.testing.assert_close(together.rotations[1], model.predict(CLOUDS[1]).rotations[0], **CLOSE)


def test_files_and_surfaces_have_one_answer(model, tmp_path):
    files = [write_off(tmp_path / f"{number}.off", SOLIDS.surfaces[number].triangles) for number in range(3)]
    found = model.predict(files)
    torch.testing.assert_close(found.rotations, model.predict(SOLIDS.surfaces[:3]).rotations, rtol=0, atol=1e-3)
    assert torch.equal(model.predict(files[2]).rotations[0], model.predict(files[2]).rotations[0])
    (tmp_path / "broken.off").write_text("OFF\n3 1 0\n")
    answers = list(model.predict_files([*files, tmp_path / "broken.off", files[0]]))
    assert [isinstance(answer, FileError) for _, answer in answers] == [False, False, False, True, False]
    assert answers[0][1] == answers[4][1]
    assert [answer.label for _, answer in answers[:3]] == found.names


def test_upright_clouds_do_not_depend_on_the_rotation(model, turn):
    """upright(R x) = upright(x), about the same centroid."""
    upright = model.upright(CLOUDS + 3.0)
    again = model.upright((CLOUDS + 3.0) @ turn.mT)
    for first, second, cloud in zip(upright, again, CLOUDS, strict=True):
        torch.testing.assert_close(first - first.mean(0), second - second.mean(0), rtol=0, atol=2e-3)
        torch.testing.assert_close(first.mean(0), cloud.mean(0) + 3.0, **CLOSE)
    torch.testing.assert_close(
        model.predict(upright).rotations, torch.eye(3).expand(len(CLOUDS), 3, 3), rtol=0, atol=2e-3
    )
    with pytest.raises(AssertionError):  # control: they were not upright before
        torch.testing.assert_close(upright[0] - 3.0, CLOUDS[0], rtol=0, atol=2e-3)


def test_what_has_no_rotation_is_not_rotated():
    cloud = torch.randn(10, 3)
    assert torch.equal(rotate_back(cloud, torch.full((3, 3), torch.nan)), cloud)


def test_what_is_not_finite_is_no_answer(model):
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.network.body.classes.norm.weight.fill_(torch.inf)
    with pytest.raises(UnansweredError, match="no answer for cloud 1 of 2"):
        broken.predict(CLOUDS[:2])
    assert [type(answer) for _, answer in broken.predict_files([])] == []


@pytest.mark.parametrize("wrong", [[], torch.zeros(0, 5, 3)])
def test_no_clouds_are_refused(model, wrong):
    with pytest.raises(ValueError, match="there are no clouds"):
        model.predict(wrong)
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        model.predict(CLOUDS, batch_size=0)


def test_predict_does_not_depend_on_the_mode_and_restores_it(model):
    expected = model.predict(CLOUDS[:3]).output.scores
    training = copy.deepcopy(model).train()
    torch.testing.assert_close(training.predict(CLOUDS[:3]).output.scores, expected)
    assert training.network.training
    double = copy.deepcopy(model).double().predict(CLOUDS[:3])
    torch.testing.assert_close(double.output.scores, expected, rtol=0, atol=1e-3)


def test_the_model_describes_itself(model):
    assert repr(model) == (
        "PointModel('solids': 5 classes (block, chair, cup, rocket, ...), 300 points of a surface, "
        f"{model.network.parameter_counts()[0]:,} parameters)"
    )
    other = PointModel(model.network, with_uprights(model.card, [(0.0,) * 9] * 5))
    assert model.fingerprint() == point_model().fingerprint() != other.fingerprint()
    assert equicaps.PointModel is PointModel
    assert not issubclass(PointModel, PoseModel)
