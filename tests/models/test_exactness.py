"""Exactness of trained networks on real digits; ``python -m reproduction exactness`` measures it on all 10,000."""

import pytest
import torch

import equicaps
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.metrics import exactness
from equicaps.training.evaluation import evaluate

DIGITS = 250
DEFINED = {"digits": 95, "digits-upright": 95, "digits-paper": 95}
"""The least percentage of poses that must be defined: if all were undefined, none could change."""


@pytest.fixture(scope="module", params=list(DEFINED))
def trained(request):
    """The shipped models with poses; ``digits-paper`` is the paper's own network."""
    return request.param, equicaps.load(request.param).network


@pytest.mark.parametrize("turned", [False, True], ids=["upright", "rotated"])
def test_trained_networks_are_exact_under_quarter_turns_in_float32(trained, turned):
    """No prediction changes; scores, agreements and defined poses change by less than 1e-4."""
    name, network = trained
    degrees = torch.rand(DIGITS, generator=torch.Generator().manual_seed(0)) * 360 * turned
    found = exactness(network, rotate(embedded_digits("test").images[:DIGITS], degrees, 32))
    assert found.images == DIGITS
    assert found.predictions_changed == 0
    assert all(figure < 1e-4 for figure in (found.scores, found.activations, found.poses))
    assert found.poses_defined > DEFINED[name]


def test_that_measurement_rejects_nan():
    """Control: NaN does not count as unchanged."""
    network = equicaps.load("digits").network
    found = exactness(lambda x: network(x).map(lambda value: value * torch.nan), torch.rand(2, 1, 32, 32))
    assert not found.scores < 1e-4
    assert not found.activations < 1e-4


@pytest.mark.parametrize(
    ("name", "accuracy", "error"), [("digits", 97.5, 4), ("digits-paper", 97, 17), ("digits-upright", 93, 12)]
)
def test_shipped_models_classify_digits_at_any_angle(name, accuracy, error):
    digits = embedded_digits("test")
    found = evaluate(equicaps.load(name).network, digits.images[:500], digits.labels[:500], size=32)
    assert found.accuracy.scores > accuracy
    assert found.pose_error.mean < error


@pytest.mark.parametrize("name", list(DEFINED))
def test_upright_digits_read_about_zero_degrees(name):
    digits = embedded_digits("test")
    model = equicaps.load(name)
    angles = model.angles(model.predict(digits.images[:500]).output, digits.labels[:500])
    for label in range(10):
        of_class = angles[digits.labels[:500] == label]
        assert of_class.nanmedian().abs() < 15
    turned = model.angles(
        model.predict(rotate(digits.images[:500], torch.full((500,), 60.0))).output, digits.labels[:500]
    )
    assert abs((turned - angles).nanmedian() - 60) < 5


def test_the_plain_cnn_classifies_only_upright_digits_and_its_card_says_so():
    """Control for the tests above; ``equicaps serve`` shows this network beside the capsules."""
    digits = embedded_digits("test")
    images, labels = digits.images[:300], digits.labels[:300]
    plain = equicaps.load("digits-plain")
    assert (plain.predict(images).labels == labels).double().mean() > 0.95
    assert (plain.predict(torch.rot90(images, 1, (-2, -1))).labels == labels).double().mean() < 0.5
    assert "no poses" in plain.card.convention
    assert "pose_error_mean" not in plain.card.figures
