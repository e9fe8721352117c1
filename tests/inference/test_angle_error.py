"""The error that every angle has: what it promises, and where there is none."""

import math
from dataclasses import asdict, replace
from types import SimpleNamespace

import pytest
import torch

from equicaps import load
from equicaps.data import Dataset, embedded_digits
from equicaps.inference import Card, PoseModel, angle_error
from equicaps.inference.angle_error import (
    FROM_ROTATION,
    FROM_TRUTH,
    AngleErrors,
    angles_before,
    comparable,
    coverage,
    deviations,
    evidence,
    measure_errors,
)
from equicaps.models import CapsOutput, GroupCapsNet

TABLE = AngleErrors((2.0, 8.0), (2.0, 8.0, 10.0), (3.0, 9.0, 20.0))


OFF = 50.0


@pytest.fixture
def two_views(monkeypatch):
    """Of each image, which takes less time."""
    monkeypatch.setattr(angle_error, "VIEWS", 0)


@pytest.fixture(scope="module")
def digits():
    return load("digits")


@pytest.fixture(scope="module")
def askew(digits):
    """A model whose zeros are all off: its angles follow every rotation and are wrong."""
    zeros = tuple(zero + OFF for zero in digits.card.zeros)
    return PoseModel(digits.network, replace(digits.card, zeros=zeros, angle_errors=None))


def unseen(which=slice(None), known=()):
    """Test digits, some of which are known to be upright."""
    data = embedded_digits("test").take(which)
    angles = torch.full((len(data),), math.nan)
    angles[torch.as_tensor(known, dtype=torch.long)] = 0.0
    return replace(data, angles=angles)


def test_errors_are_read_from_the_table_and_interpolated():
    labels, seen = torch.tensor([0, 0, 1, 1, 1, 1]), torch.tensor([1.0, 0.4, 1.0, 0.9, 0.01, 0.0])
    found = TABLE(labels, seen)
    torch.testing.assert_close(found, torch.tensor([3.0, 6.0, 9.0, 9 + 11 * (8 / 0.9 - 8) / 2, 20.0, 20.0]))
    assert AngleErrors((2.0,), (1.0,), (500.0,))(torch.tensor([0]), torch.tensor([1.0])).item() == 180


@pytest.mark.parametrize("known", [(True,), (True, False, True)])
def test_what_was_compared_with_known_angles_is_said_for_every_class(known):
    with pytest.raises(ValueError, match="`known_angles` must say something of each of 2 classes"):
        replace(TABLE, known_angles=known)


def test_model_files_say_what_errors_were_compared_with():
    """Those of earlier versions do not: there, angles were compared with themselves."""
    told = replace(TABLE, known_angles=(True, False))
    assert AngleErrors.of(asdict(told)) == told
    before = asdict(TABLE)
    del before["known_angles"]
    assert AngleErrors.of(before) == TABLE


def test_the_meaning_of_an_error_is_said_in_words():
    def meaning(*known):
        return replace(TABLE, known_angles=known).meaning(("bolt", "nut"))

    assert meaning() == meaning(False, False) == FROM_ROTATION
    assert meaning(True, True) == FROM_TRUTH
    assert meaning(False, True) == f"{FROM_TRUTH} (nut), or {FROM_ROTATION} (other classes)"


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
    data = unseen()
    found, off = deviations(digits, data.images, 360 * torch.rand(len(data)), angles_before(digits, data))
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
    found = coverage(digits, unseen(range(10)))
    assert found == pytest.approx(
        {"stated_angle_error_mean": 5, "angle_error_coverage": 500 / 9, "angle_error_coverage_smallest_third": 0,
         "angle_error_coverage_middle_third": 200 / 3, "angle_error_coverage_largest_third": 100}
    )  # fmt: skip
    answers = replace(answers, angle_error=None)
    assert coverage(digits, unseen(range(10))) is None


@pytest.mark.usefixtures("two_views")
def test_errors_that_are_measured_cover_other_images(digits):
    """Measured on one half of the digits, they hold for the other; a network that knows less has larger ones."""
    data = embedded_digits("test")
    blurred = replace(data, images=torch.nn.functional.avg_pool2d(data.images, 9, 1, 4))
    tables = [measure_errors(digits, seen.take(slice(None, None, 2))) for seen in (data, blurred)]
    for table, seen in zip(tables, (data, blurred), strict=True):
        model = PoseModel(digits.network, replace(digits.card, angle_errors=table))
        others = seen.take(slice(1, None, 2))
        found, off = deviations(model, others.images, 360 * torch.rand(len(others)), angles_before(model, others))
        assert (off <= found.angle_error).double().mean().item() > 0.82
    assert sum(tables[1].errors) > 1.5 * sum(tables[0].errors)


def test_the_angles_before_the_rotations_are_computed_once_and_no_error_changes(digits, monkeypatch):
    """20 views of 25 images: 25 answers before and 500 after; as good as computing the former for each view anew."""
    data, seen, predict = unseen(range(25)), [], PoseModel.predict
    monkeypatch.setattr(PoseModel, "predict", lambda model, x: seen.append(len(x)) or predict(model, x))
    table = measure_errors(digits, data)
    assert sum(seen) == 25 + 20 * 25

    def anew(model, x, degrees, before, off=0.0):
        return deviations(model, x, degrees, angles_before(model, data) + off)

    monkeypatch.setattr(angle_error, "deviations", anew)
    assert measure_errors(digits, data) == table
    monkeypatch.setattr(angle_error, "deviations", lambda *given: anew(*given, off=1.0))
    assert measure_errors(digits, data) != table  # control


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
    assert measure_errors(digits, unseen(range(19))) is None
    assert measure_errors(load("digits-plain"), unseen(range(40))) is None
    assert load("digits-plain").predict(images[:2]).angle_error is None
    assert next(iter(load("digits-plain").predict(images[:2]))).angle_error is None


def test_images_without_a_pose_do_not_count():
    network = GroupCapsNet.from_preset("steerable", num_classes=2)
    model = PoseModel(network, Card("test", "", "", ("a", "b"), (0.0, 0.0)))
    blank = Dataset("blank", torch.zeros(40, 1, 32, 32), torch.zeros(40, dtype=torch.long), ("a", "b"))
    assert measure_errors(model, blank) is None
    assert measure_errors(model, replace(blank, angles=torch.zeros(40))) is None


@pytest.mark.usefixtures("two_views")
def test_errors_are_measured_from_known_angles_where_there_are_enough(digits, askew):
    """A model that is 50 degrees off says so; without known angles, or with too few, it states how angles follow."""
    all_known, few, none = unseen(range(60), range(60)), unseen(range(60), range(19)), unseen(range(60))
    told, follows = measure_errors(askew, all_known), measure_errors(askew, none)
    assert told.known_angles == (True,) * 10
    assert follows.known_angles == (False,) * 10
    assert max(follows.by_class) < 40 < 50 < min(told.by_class)
    assert measure_errors(askew, few) == follows == measure_errors(askew, replace(none, angles=None))
    assert max(measure_errors(digits, all_known).by_class) < 50  # control: of a model whose zeros are right


@pytest.mark.usefixtures("two_views")
def test_errors_from_known_angles_cover_the_truth_about_other_images(askew):
    """Nine of ten, of 500 other digits; the errors that only say how angles follow cover hardly any."""
    half, rest = range(0, 500), range(500, 1000)
    everything = unseen(rest, range(500))
    tables = measure_errors(askew, unseen(half, range(500))), measure_errors(askew, unseen(half))
    told, follows = (PoseModel(askew.network, replace(askew.card, angle_errors=table)) for table in tables)
    found = coverage(told, everything)
    assert found["angle_error_known_angles"] == 500
    assert 85 < found["angle_error_coverage"] < 95
    assert coverage(follows, everything)["angle_error_coverage"] < 20
    without = coverage(follows, replace(everything, angles=None))
    assert 85 < without["angle_error_coverage"] < 95
    assert "angle_error_known_angles" not in without


@pytest.mark.usefixtures("two_views")
def test_a_few_known_angles_are_measured_alone(askew):
    """The other 180 images would hide the truth: their angles follow."""
    few = unseen(range(200), range(0, 200, 8))
    few = replace(few, labels=torch.zeros_like(few.labels))
    assert len(comparable(few)) == 25
    assert measure_errors(askew, replace(few, angles=None)).by_class[3] < 20
    assert measure_errors(askew, few).by_class[3] > 50


@pytest.mark.usefixtures("two_views")
def test_classes_without_known_angles_keep_all_their_images(askew):
    """Angles of threes are known, of all but two: the two do not count, and other classes are measured as before."""
    data = embedded_digits("test").take(range(400))
    threes = (data.labels == 3).nonzero().flatten()
    some = unseen(range(400), threes[2:])
    chosen = comparable(some)
    assert len(chosen) == 400 - 2
    assert int(chosen.known_angles.sum()) == len(threes) - 2 >= 20
    told, follows = measure_errors(askew, some), measure_errors(askew, data)
    assert told.known_angles == tuple(label == 3 for label in range(10))
    assert told.by_class[3] > 50 > follows.by_class[3]
    assert told.by_class[1] == pytest.approx(follows.by_class[1], abs=3)
    handful = comparable(unseen(range(400), threes[:19]))
    assert (len(handful), handful.angles) == (400, None)  # too few


@pytest.mark.usefixtures("two_views")
def test_known_angles_of_what_has_no_pose_are_not_compared_with(askew):
    """Twenty of the images are empty: their known angles say nothing, and the others are measured as they follow."""
    data = unseen(range(60), range(20))
    images = data.images.clone()
    images[:20] = 0
    data = replace(data, images=images)
    assert measure_errors(askew, data) == measure_errors(askew, replace(data, angles=None)) is not None


@pytest.mark.parametrize(("period", "expected"), [(None, 175.0), (180.0, 5.0), (120.0, 55.0)])
def test_the_truth_about_a_symmetric_class_is_known_modulo_its_period(digits, period, expected):
    """An answer that is 175 degrees off."""
    data = unseen(range(20), range(20))
    degrees = torch.linspace(0, 340, 20)
    answer = replace(digits.predict(data.images), angles=degrees + 175)
    answer = answer if period is None else replace(answer, period=torch.full_like(degrees, period))
    model = SimpleNamespace(image_size=32, predict=lambda images: answer)
    _, off = deviations(model, data.images, degrees, data.angles)
    torch.testing.assert_close(off, torch.full_like(degrees, expected))
