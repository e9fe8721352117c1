"""The error that every angle has: what it promises, and where there is none."""

import math
from dataclasses import replace

import pytest
import torch

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.inference import Card, PoseModel, angle_error
from equicaps.inference.angle_error import AngleErrors, angles_before, coverage, deviations, evidence, measure_errors
from equicaps.models import CapsOutput, GroupCapsNet

TABLE = AngleErrors((2.0, 8.0), (2.0, 8.0, 10.0), (3.0, 9.0, 20.0))


@pytest.fixture(scope="module")
def digits():
    return load("digits")


def test_errors_are_read_from_the_table_and_interpolated():
    labels, seen = torch.tensor([0, 0, 1, 1, 1, 1]), torch.tensor([1.0, 0.4, 1.0, 0.9, 0.01, 0.0])
    found = TABLE(labels, seen)
    torch.testing.assert_close(found, torch.tensor([3.0, 6.0, 9.0, 9 + 11 * (8 / 0.9 - 8) / 2, 20.0, 20.0]))
    assert AngleErrors((2.0,), (1.0,), (500.0,))(torch.tensor([0]), torch.tensor([1.0])).item() == 180


@pytest.mark.parametrize(
    ("by_class", "rough", "errors"),
    [((-1.0,), (1.0,), (1.0,)), ((math.nan,), (1.0,), (1.0,)), ((1.0,), (2.0, 1.0), (1.0, 1.0)), ((1.0,), (), ()),
     ((1.0,), (1.0,), (1.0, 2.0)), ((1.0,), (1.0,), (math.inf,))],
)  # fmt: skip
def test_tables_that_make_no_sense_are_refused(by_class, rough, errors):
    with pytest.raises(ValueError, match="AngleErrors"):
        AngleErrors(by_class, rough, errors)


def test_a_card_needs_an_error_for_every_class():
    with pytest.raises(ValueError, match="angle_errors must have one error for each of 3 classes, but has 2"):
        Card("test", "", "", ("a", "b", "c"), (0.0,) * 3, angle_errors=TABLE)


def test_nine_of_ten_angles_of_unseen_digits_are_within_their_error(digits):
    """On digits from the package, rotated at random; half of the errors would be too small for many."""
    images = embedded_digits("test").images
    found, off = deviations(digits, images, 360 * torch.rand(len(images)), angles_before(digits, images))
    share = (off <= found.angle_error).double().mean().item()
    assert 0.85 < share < 0.95
    assert (off <= found.angle_error / 2).double().mean().item() < 0.8
    assert found.angle_error.std() > 0.5  # not one error for all


def test_coverage_counts_angles_within_their_stated_error_and_in_thirds(digits, monkeypatch):
    """Nine images whose stated errors are 1 to 9 degrees and which are all 5 degrees off; one has no angle."""
    stated = torch.tensor([9.0, 1, 8, 2, 7, 3, 6, 4, 5, 0])
    off = torch.tensor([5.0] * 9 + [math.nan])
    answers = replace(digits.predict(torch.rand(10, 1, 28, 28)), angle_error=stated)
    monkeypatch.setattr(angle_error, "deviations", lambda *_: (answers, off))
    found = coverage(digits, torch.rand(10, 1, 28, 28))
    assert found == pytest.approx(
        {"stated_angle_error_mean": 5, "angle_error_coverage": 500 / 9, "angle_error_coverage_smallest_third": 0,
         "angle_error_coverage_middle_third": 200 / 3, "angle_error_coverage_largest_third": 100}
    )  # fmt: skip
    answers = replace(answers, angle_error=None)
    assert coverage(digits, torch.rand(10, 1, 28, 28)) is None


def test_errors_that_are_measured_cover_other_images(digits, monkeypatch):
    """Measured on one half of the digits, they hold for the other; a network that knows less has larger ones."""
    monkeypatch.setattr(angle_error, "VIEWS", 0)  # so two of each image
    images = embedded_digits("test").images
    blurred = torch.nn.functional.avg_pool2d(images, 9, 1, 4)
    tables = [measure_errors(digits, seen[::2]) for seen in (images, blurred)]
    for table, seen in zip(tables, (images, blurred), strict=True):
        model = PoseModel(digits.network, replace(digits.card, angle_errors=table))
        others = seen[1::2]
        found, off = deviations(model, others, 360 * torch.rand(len(others)), angles_before(model, others))
        assert (off <= found.angle_error).double().mean().item() > 0.82
    assert sum(tables[1].errors) > 1.5 * sum(tables[0].errors)


def test_the_angles_before_the_rotations_are_computed_once_and_no_error_changes(digits, monkeypatch):
    """20 views of 25 images: 25 answers before and 500 after; as good as computing the former for each view anew."""
    images, seen, predict = embedded_digits("test").images[:25], [], PoseModel.predict
    monkeypatch.setattr(PoseModel, "predict", lambda model, x: seen.append(len(x)) or predict(model, x))
    table = measure_errors(digits, images)
    assert sum(seen) == 25 + 20 * 25

    def anew(model, x, degrees, before, off=0.0):
        return deviations(model, x, degrees, angles_before(model, x) + off)

    monkeypatch.setattr(angle_error, "deviations", anew)
    assert measure_errors(digits, images) == table
    monkeypatch.setattr(angle_error, "deviations", lambda *given: anew(*given, off=1.0))
    assert measure_errors(digits, images) != table  # control


def test_a_quarter_turn_changes_no_error(digits):
    images = torch.nn.functional.pad(embedded_digits("test").images[:50], (2,) * 4)
    still, turned = digits.predict(images), digits.predict(torch.rot90(images, 1, (-2, -1)))
    torch.testing.assert_close(turned.angle_error, still.angle_error, rtol=0, atol=1e-2)
    assert digits.predict(images[:1]).angle_error[0] == next(iter(digits.predict(images[:1]))).angle_error


def test_without_a_pose_there_is_no_error(digits):
    scores = torch.nn.functional.one_hot(torch.tensor([3, 2]), 10).float()
    poses = torch.zeros(2, 10, 2)
    poses[0, 3, 0] = 1
    found = digits.interpret(CapsOutput(scores, torch.ones(2, 10), poses))
    assert found.angle_error.isnan().tolist() == [False, True]
    assert [answer.angle_error is None for answer in found] == [False, True]
    torch.testing.assert_close(evidence(found), found.confidence)
    assert "±" in repr(found)


def test_too_few_images_and_networks_without_poses_have_none(digits):
    images = embedded_digits("test").images
    assert measure_errors(digits, images[:19]) is None
    assert measure_errors(load("digits-plain"), images[:40]) is None
    assert load("digits-plain").predict(images[:2]).angle_error is None
    assert next(iter(load("digits-plain").predict(images[:2]))).angle_error is None


def test_images_without_a_pose_do_not_count():
    network = GroupCapsNet.from_preset("steerable", num_classes=2)
    model = PoseModel(network, Card("test", "", "", ("a", "b"), (0.0, 0.0)))
    assert measure_errors(model, torch.zeros(40, 1, 32, 32)) is None
