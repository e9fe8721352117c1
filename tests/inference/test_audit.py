"""The certificate of a model: what it measures, and what it must reject."""

import copy
from dataclasses import replace

import pytest
import torch
from symmetric_shapes import MANY, SHAPES, shapes, untrained

import equicaps
from equicaps.data import Dataset, embedded_digits
from equicaps.drawing import plot_certificate
from equicaps.errors import UsageError
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel, audit
from equicaps.inference.symmetry import find_symmetries
from equicaps.metrics import Exactness, LayerExactness
from equicaps.models import Architecture, GroupCapsNet


@pytest.fixture(scope="module")
def digits():
    return embedded_digits("test").take(slice(0, 12))


@pytest.fixture(scope="module")
def certificate(digits):
    return audit.audit(equicaps.load("digits-upright"), digits, step=180)


def test_a_shipped_model_is_exact(certificate, digits):
    assert certificate.holds
    assert certificate.images == len(digits)
    assert certificate.exact.images == 2 * len(digits)  # as given, and rotated
    assert [entry.degrees for entry in certificate.angles] == [0, 180]
    assert certificate.angles[0].accuracy == certificate.angles[1].accuracy > 80
    assert all(entry.equivariance < entry.control for entry in certificate.layers if entry.degrees >= 45)


def test_a_network_without_poses_is_not_exact(digits):
    """Control: a plain CNN fails, and the certificate says why."""
    found = audit.audit(equicaps.load("digits-plain"), digits, step=180)
    assert not found.holds
    assert "predictions change under quarter turns" in found.failures[0]
    assert found.to_dict()["holds"] is False


@pytest.mark.parametrize("name", ["scores", "activations", "poses"])
@pytest.mark.parametrize("value", [audit.ALLOWED, torch.nan], ids=["limit", "NaN"])
def test_each_output_must_stay_below_the_limit(certificate, name, value):
    found = replace(certificate, exact=certificate.exact._replace(**{name: value}))
    assert not found.holds
    assert len(found.failures) == 1


@pytest.mark.parametrize("name", LayerExactness._fields)
@pytest.mark.parametrize("value", [audit.ALLOWED_IN_LAYERS, torch.nan], ids=["limit", "NaN"])
def test_each_layer_must_stay_below_the_limit(certificate, name, value):
    """NaN compares as neither larger nor smaller, so it must not pass for a change of 0."""
    first, *rest = certificate.exact_layers
    found = replace(certificate, exact_layers=(first._replace(**{name: value}), *rest))
    assert [failure.split(" changes by")[0] for failure in found.failures] == ["layer 1"]


@pytest.fixture(scope="module")
def mirrored(digits):
    """The certificate of an untrained network, with scores as small as those of a trained one."""
    network = Architecture(mirror="ignore").build(seed=0)
    network.train()(rotate(digits.images, torch.zeros(len(digits)), 32))
    torch.nn.init.constant_(network.body.classes.norm.weight, 0.1)
    return audit.audit(PoseModel(network, equicaps.load("digits-upright").card), digits, step=180)


def test_a_network_that_ignores_mirroring_is_certified_to_do_so(mirrored, certificate, digits):
    assert mirrored.holds
    assert mirrored.exact_mirrored.images == 2 * len(digits)
    assert 0 < mirrored.exact_mirrored.scores < audit.ALLOWED  # it rounds: 0 would mean that nothing was mirrored
    assert mirrored.to_dict()["exact_mirrored"]["predictions_changed"] == 0
    assert certificate.exact_mirrored is None
    assert certificate.to_dict()["exact_mirrored"] is None


def test_a_network_that_only_claims_to_ignore_mirroring_fails(digits, monkeypatch):
    """Control."""
    monkeypatch.setattr(GroupCapsNet, "ignores_mirror", True)
    found = audit.audit(equicaps.load("digits-upright"), digits, step=180)
    assert not found.holds
    assert all("under mirroring" in failure for failure in found.failures)


@pytest.mark.parametrize("name", ["scores", "activations", "poses"])
@pytest.mark.parametrize("value", [audit.ALLOWED, torch.nan], ids=["limit", "NaN"])
def test_each_output_must_stay_below_the_limit_under_mirroring(mirrored, name, value):
    found = replace(mirrored, exact_mirrored=mirrored.exact_mirrored._replace(**{name: value}))
    assert len(found.failures) == 1
    assert "under mirroring" in found.failures[0]


def test_a_changed_prediction_fails(certificate):
    found = replace(certificate, exact=Exactness(10, 1, 0.0, 0.0, 0.0, 100.0))
    assert found.failures == ["1 predictions change under quarter turns"]


def test_an_audit_takes_models_of_any_dtype_and_mode_and_leaves_them_unchanged(digits, certificate):
    model = equicaps.load("digits-upright").double().train()
    state = copy.deepcopy(model.state_dict())
    found = audit.audit(model, digits, step=180)
    assert found.holds
    assert found.exact.scores < certificate.exact.scores  # computed in float64
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_mistakes_are_explained(digits):
    model = equicaps.load("digits-upright")
    with pytest.raises(ValueError, match="step must be 1 to 180 degrees, but is 0"):
        audit.audit(model, digits, step=0)
    with pytest.raises(UsageError, match=r"has the classes .* but the model knows"):
        audit.audit(model, replace(digits, classes=tuple("abcdefghij")))


def test_poses_that_rotate_along_have_no_error_at_a_quarter_turn(digits):
    """Control: rotated the other way, the error would be a half turn."""
    [_, quarter, *_] = audit.audit(equicaps.load("digits-upright"), digits, step=90).angles
    assert quarter.degrees == 90
    assert quarter.pose_error_mean < 0.01


def test_the_accuracy_at_an_angle_is_that_of_the_rotated_images(digits):
    """An ordinary CNN that knows upright digits only loses some when they stand on their heads."""
    upright, inverted = audit.audit(equicaps.load("digits-plain"), digits, step=180).angles
    assert upright.accuracy > 90
    assert inverted.accuracy < 70


def test_pose_errors_of_symmetric_classes_are_those_modulo_their_period():
    """Two bars, triangles, squares and hexagons each, and two washers, which do not count."""
    images, labels = shapes()
    network, few = untrained(), torch.arange(0, 5 * MANY, MANY // 2)
    symmetries = find_symmetries(network, images, labels)
    card = Card("test", "", "", SHAPES, (0.0,) * len(SHAPES), frame=32)
    data = Dataset("shapes", images[few], labels[few], SHAPES)
    found, plain = (
        audit.audit(PoseModel(network, replace(card, symmetries=which)), data, step=120) for which in (symmetries, None)
    )
    assert (found.images_modulo_period, found.images_of_round_classes) == (8, 2)
    assert (plain.images_modulo_period, plain.images_of_round_classes) == (0, 0)
    assert found.angles[0].pose_error_mean < 1e-3
    assert max(entry.pose_error_mean for entry in found.angles) < 4
    assert min(entry.pose_error_mean for entry in plain.angles) > 30  # control
    assert [entry.accuracy for entry in found.angles] == [entry.accuracy for entry in plain.angles]
    washers = data.take((data.labels == 4).nonzero().flatten())
    only = audit.audit(PoseModel(network, replace(card, symmetries=symmetries)), washers, step=180)
    assert only.to_dict()["angles"][0]["pose_error_mean"] is None
    assert plot_certificate(only).startswith(b"\x89PNG")
