"""The error that every angle has: what it promises, and where there is none."""

import math
import statistics
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
    assert AngleErrors.of({**before, "known_angles": [False, False]}) == TABLE  # as some versions wrote it
    assert replace(TABLE, known_angles=(False, False)).known_angles == ()
    assert TABLE.is_known.tolist() == [False, False]
    assert told.is_known.tolist() == [True, False]


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
    found, off = deviations(digits, data.images, 360 * torch.rand(len(data)), angles_before(digits, data)[1])
    share = (off <= found.angle_error).double().mean().item()
    assert 0.85 < share < 0.95
    assert (off <= found.angle_error / 2).double().mean().item() < 0.8
    assert found.angle_error.std() > 0.5  # not one error for all


def test_coverage_counts_angles_within_their_stated_error_and_in_thirds(digits, monkeypatch):
    """Nine images whose stated errors are 1 to 9 degrees and which are all 5 degrees off; one has no angle."""
    stated = torch.tensor([9.0, 1, 8, 2, 7, 3, 6, 4, 5, 0])
    off = torch.tensor([5.0] * 9 + [math.nan])
    answers = replace(digits.predict(torch.rand(10, 1, 28, 28)), angle_error=stated)
    monkeypatch.setattr(angle_error, "deviations", lambda *_: (answers, off.expand(2, -1)))
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
        found, off = deviations(model, others.images, 360 * torch.rand(len(others)), angles_before(model, others)[1])
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


def of_class(label, count, data=None):
    """The places of the first images of a class."""
    labels = (embedded_digits("test") if data is None else data).labels
    return (labels == label).nonzero().flatten()[:count]


@pytest.mark.usefixtures("two_views")
def test_errors_are_measured_from_known_angles_where_there_are_enough(digits, askew):
    """A model that is 50 degrees off says so; without known angles it states how angles follow."""
    all_known, none = unseen(range(200), range(200)), unseen(range(200))
    told, follows = measure_errors(askew, all_known), measure_errors(askew, none)
    assert told.known_angles == (True,) * 10
    assert follows.known_angles == ()
    assert statistics.median(follows.by_class) < 10 < 50 < min(told.by_class)
    assert follows == measure_errors(askew, replace(none, angles=None))
    assert (
        statistics.median(measure_errors(digits, all_known).by_class) < 50
    )  # control: of a model whose zeros are right


@pytest.mark.usefixtures("two_views")
def test_a_few_known_angles_of_every_class_change_nothing(askew):
    """Twenty in all, two of each class: the table has as many bins as without them."""
    known = torch.cat([of_class(label, 2) for label in range(10)])
    found = measure_errors(askew, unseen(range(400), known))
    assert found == measure_errors(askew, unseen(range(400)))
    assert len(found.rough) == 5
    assert found.known_angles == ()


@pytest.mark.usefixtures("two_views")
@pytest.mark.parametrize(("count", "known"), [(9, False), (10, True)])
def test_every_class_is_measured_from_known_angles_if_it_has_enough(askew, count, known):
    """All angles of sixes are known, and those of some threes: nine are too few, and then all threes are rotated."""
    data = embedded_digits("test").take(range(400))
    some = unseen(range(400), torch.cat((of_class(6, None, data), of_class(3, count, data))))
    told, follows = measure_errors(askew, some), measure_errors(askew, data)
    assert told.known_angles == tuple(label == 6 or (known and label == 3) for label in range(10))
    assert told.by_class[6] > 50 > follows.by_class[6]
    assert (told.by_class[3] > 50) == known
    for label in {*range(10)} - {3, 6}:
        assert told.by_class[label] == follows.by_class[label]
    if not known:
        assert told.by_class[3] == follows.by_class[3]


@pytest.mark.usefixtures("two_views")
def test_images_without_a_known_angle_do_not_hide_the_truth_about_their_class(askew):
    """Ten of some eighty threes are known; were the others measured by rotation, most threes would be right."""
    data = embedded_digits("test").take(of_class(3, None))
    assert len(data) > 70
    known = replace(data, angles=torch.full((len(data),), math.nan))
    known.angles[:10] = 0.0
    assert measure_errors(askew, data).by_class[3] < 20
    assert measure_errors(askew, known).by_class[3] > 50
    assert measure_errors(askew, known).known_angles[3]


@pytest.mark.usefixtures("two_views")
def test_known_angles_of_what_has_no_pose_are_not_compared_with(askew):
    """One of ten threes with a known angle is empty, or taken for another digit: nine are too few."""
    places = of_class(3, 40)
    data = unseen(places, range(10))
    assert measure_errors(askew, data).known_angles[3]
    for replacement in (torch.zeros(1, 28, 28), embedded_digits("test").images[int(of_class(1, 1))]):
        images = data.images.clone()
        images[0] = replacement
        changed = replace(data, images=images)
        assert measure_errors(askew, changed) == measure_errors(askew, replace(changed, angles=None)) is not None


def test_a_view_without_a_pose_does_not_take_its_class_back_to_rotation(askew, monkeypatch):
    """Of 21 images of one class ten are known: one of their many views has no pose, and the class is still measured."""
    spoilt = iter((True,))

    def one_view_has_no_pose(*given):
        prediction, off = deviations(*given)
        off[:, 0] = torch.where(torch.tensor(next(spoilt, False)), math.nan, off[:, 0])
        return prediction, off

    rotated = measure_errors(askew, unseen(of_class(3, 21)))
    monkeypatch.setattr(angle_error, "deviations", one_view_has_no_pose)
    told = measure_errors(askew, unseen(of_class(3, 21), range(10)))
    assert next(spoilt, None) is None  # one view was spoilt
    assert told.known_angles[3]
    assert told.by_class[3] > 50 > rotated.by_class[3]
    assert len(told.rough) == len(told.errors) == 1  # from ten images


@pytest.mark.usefixtures("two_views")
def test_errors_from_known_angles_cover_the_truth_about_other_images(askew):
    """Nine of ten, of 500 other digits; the errors that only say how angles follow would cover hardly any."""
    half, rest = range(0, 500), range(500, 1000)
    everything = unseen(rest, range(500))
    tables = measure_errors(askew, unseen(half, range(500))), measure_errors(askew, unseen(half))
    told, follows = (PoseModel(askew.network, replace(askew.card, angle_errors=table)) for table in tables)
    found = coverage(told, everything)
    assert found["angle_error_known_angles"] == 500
    assert 85 < found["angle_error_coverage"] < 95
    claimed = replace(tables[1], known_angles=(True,) * 10)
    claims = PoseModel(askew.network, replace(askew.card, angle_errors=claimed))
    assert coverage(claims, everything)["angle_error_coverage"] < 20
    by_rotation = coverage(follows, everything)
    assert 85 < by_rotation["angle_error_coverage"] < 95
    assert "angle_error_known_angles" not in by_rotation
    assert by_rotation == coverage(follows, replace(everything, angles=None))
    assert coverage(told, replace(everything, angles=None)) is None  # nothing to compare with


def test_coverage_compares_every_class_with_what_its_errors_mean(askew):
    """Errors of threes are from known angles, so that those without one do not count; ones are only rotated."""
    data = embedded_digits("test").take(torch.cat((of_class(3, 30), of_class(1, 30))))
    angles = torch.cat((torch.zeros(20), torch.full((10,), math.nan), torch.zeros(30)))
    table = AngleErrors((30.0,) * 10, (1.0,), (30.0,), tuple(label == 3 for label in range(10)))
    model = PoseModel(askew.network, replace(askew.card, angle_errors=table))
    found = coverage(model, replace(data, angles=angles))
    assert found["angle_error_known_angles"] == pytest.approx(20, abs=2)  # as many as are recognised
    assert found["angle_error_coverage"] == pytest.approx(100 * 30 / 50, abs=8)
    follows = PoseModel(askew.network, replace(askew.card, angle_errors=replace(table, known_angles=())))
    assert coverage(follows, replace(data, angles=angles))["angle_error_coverage"] > 90


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
