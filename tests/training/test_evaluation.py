"""A part of a set represents all of it, whatever its order."""

from dataclasses import replace

import pytest
import torch
from small_training import config, digits, network
from symmetric_shapes import MANY, SHAPES, shapes, untrained

from equicaps.data import Dataset
from equicaps.images import rotate
from equicaps.inference.symmetry import FEWEST as FEWEST_OF_A_CLASS
from equicaps.models.output import CapsOutput
from equicaps.training import AnyAngle, AsTheyAre, Intervals, LookOnce, evaluation, zeros
from equicaps.training.about import about_images
from equicaps.training.evaluation import evaluate


def in_the_order_of_classes(count=30):
    data = digits(count)
    return data.take(data.labels.argsort(stable=True))


class FirstClass(torch.nn.Module):
    """Predicts the first class for every image."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, images):
        scores = torch.eye(3)[:1].expand(len(images), 3)
        return CapsOutput(scores, scores, torch.tensor([1.0, 0.0]).expand(len(images), 3, 2))


@pytest.mark.parametrize("protocol", [AnyAngle, AsTheyAre])
def test_a_part_of_a_set_in_the_order_of_its_classes_has_all_of_them(protocol):
    """A network that always predicts one of three classes is correct for a third of nine images, not for all."""
    measure = protocol(in_the_order_of_classes())
    assert in_the_order_of_classes().labels[:9].tolist() == [0] * 9  # guard: the first nine are one class
    found = measure(FirstClass(), 9)
    assert found["images"] == 9
    assert found["accuracy"] == pytest.approx(100 / 3)
    assert measure(FirstClass(), None)["images"] == 30


def test_the_zeros_of_all_classes_are_measured(monkeypatch):
    seen = []
    monkeypatch.setattr(
        zeros, "class_zeros", lambda net, images, labels, classes: seen.append(labels) or [0.0] * classes
    )
    data = in_the_order_of_classes()
    few = config(2, intervals=Intervals(evaluation_images=6))
    found = about_images(network(), few, data, None, {"classes": data.classes, "figures": {}, "config": few.to_dict()})
    assert [labels.tolist() for labels in seen] == [[0, 0, 1, 1, 2, 2]]
    assert found["zeros"] == [0.0] * 3
    assert found["frame"] == max(data.images.shape[-2:])


def spots(count):
    """Images with one spot to the right of the centre."""
    images = torch.zeros(count, 1, 32, 32)
    images[..., 14:18, 25:29] = 1
    return images


def follow_the_light(images):
    """Poses that point at the light; the first class for light on the right, the second otherwise."""
    axis = torch.arange(32.0) - 15.5
    light = torch.stack(((images * axis).sum((1, 2, 3)), -(images * axis[:, None]).sum((1, 2, 3))), -1)
    poses = torch.nn.functional.normalize(light, dim=-1).unsqueeze(1).expand(-1, 2, 2)
    scores = torch.eye(2)[(poses[:, 0, 0] < 0.9).long()]
    return CapsOutput(scores, scores, poses)


def test_poses_that_rotate_along_have_no_error_and_accuracies_are_of_rotated_images():
    """Upright, every answer would be correct; of uniform angles, 52 of 360 degrees are near enough."""
    found = evaluate(follow_the_light, spots(40), torch.zeros(40, dtype=torch.long), size=32)
    assert found.pose_error.mean < 1
    assert found.pose_error.undefined == 0
    assert 0 < found.accuracy.scores < 40


def test_the_seed_decides_the_angles():
    def angles(seed):
        seen = []
        labels = torch.zeros(6, dtype=torch.long)
        evaluate(lambda x: seen.append(follow_the_light(x)) or seen[-1], spots(6), labels, size=32, seed=seed)
        return seen[1].poses[:, 0]

    assert torch.equal(angles(1), angles(1))
    assert (angles(1) - angles(2)).abs().amax(-1).min() > 1e-3


def test_every_image_counts_the_same_whatever_its_batch():
    """Eight of nine are correct; by batches of four it would be two of three."""
    data = in_the_order_of_classes()
    data = data.take([*range(8), -1])
    for protocol in (AnyAngle, AsTheyAre):
        assert protocol(data, batch=4)(FirstClass())["accuracy"] == pytest.approx(100 * 8 / 9)


def test_the_confusion_has_true_classes_in_rows_and_answers_in_columns():
    data = in_the_order_of_classes()
    assert AnyAngle(data, confusion=True)(FirstClass())["confusion"] == [[10, 0, 0]] * 3
    assert "confusion" not in AnyAngle(data)(FirstClass())


def test_validation_images_on_the_way_and_test_images_at_the_end():
    once = LookOnce(AnyAngle(digits(12)), AnyAngle(digits(30)))
    assert once(FirstClass(), 6)["images"] == 6
    last = once(FirstClass(), None)
    assert (last["images"], last["validation_images"]) == (30, 12)


@pytest.fixture(scope="module")
def symmetric():
    """An untrained network, and bars, triangles, squares, hexagons, washers and arrows."""
    images, labels = shapes()
    return untrained(), Dataset("shapes", images, labels, SHAPES)


def test_errors_of_symmetric_classes_are_measured_modulo_their_period(symmetric):
    """Four of six classes, and one that is round; by the protocol of the paper, most of them are off by 180 degrees."""
    net, data = symmetric
    found, by_protocol = AnyAngle(data, symmetries_from=data)(net), AnyAngle(data)(net)
    assert found["images_modulo_period"] == 4 * MANY
    assert found["images_of_round_classes"] == MANY
    assert found["pose_undefined"] == 0
    symmetric_only = data.take(slice(0, 4 * MANY))
    few = AnyAngle(symmetric_only, symmetries_from=data)(net)
    assert few["pose_error_mean"] < 4
    assert AnyAngle(symmetric_only)(net)["pose_error_mean"] > 45  # control
    same = ("accuracy", "agreement_accuracy", "balanced_accuracy", "images")
    assert [found[name] for name in same] == [by_protocol[name] for name in same]
    assert "images_modulo_period" not in by_protocol


def test_copies_of_an_image_are_no_evidence_of_a_symmetry(symmetric):
    """Three bars among many others: too few to say, also if they are repeated; of ten, repeated ones are used once."""
    net, data = symmetric
    for size, found in ((FEWEST_OF_A_CLASS - 2, False), (MANY // 2, True)):
        few = data.take([*range(size), *range(MANY, len(data))])
        balanced = few.balanced()
        assert balanced.class_sizes() == [MANY] * len(SHAPES)
        symmetries = zeros.symmetries_of(net, balanced)
        assert symmetries == zeros.symmetries_of(net, few)
        assert (symmetries.classes[0] is not None) == found
        assert symmetries.classes[1] is not None


def test_without_symmetric_classes_the_figures_are_those_of_the_protocol(symmetric):
    net, data = symmetric
    arrows = data.take(slice(5 * MANY, None))
    assert AnyAngle(arrows, symmetries_from=arrows)(net) == AnyAngle(arrows)(net)
    few = digits(12)
    assert AnyAngle(few, symmetries_from=few)(FirstClass()) == AnyAngle(few)(FirstClass())


def test_round_classes_have_no_error(symmetric):
    net, data = symmetric
    washers = data.take(slice(4 * MANY, 5 * MANY))
    found = AnyAngle(replace(washers, angles=torch.zeros(MANY)), zeros_from=data, symmetries_from=data)(net)
    assert found["images_of_round_classes"] == found["images"] == MANY
    assert not [name for name in found if "pose" in name or "angle" in name]


def test_known_angles_of_symmetric_classes_are_compared_modulo_their_period(symmetric, monkeypatch):
    """Bars that lie anywhere: whoever wrote the angles down could not tell the ends of a bar apart.

    The zeros are those of poses, which are not what is read here.
    """
    monkeypatch.setattr(evaluation, "zeros_of", lambda *given, **options: [40.0] * len(SHAPES))
    net, data = symmetric
    bars = data.take(slice(0, MANY))
    angles = 360 * torch.rand(MANY, generator=torch.Generator().manual_seed(0))
    images = rotate(bars.images, angles)
    flipped = angles + 180 * (torch.arange(MANY) % 2)
    known = replace(bars, images=images, angles=flipped)
    found = AnyAngle(known, zeros_from=data, symmetries_from=data)(net)
    assert found["angle_error_mean"] < 8
    off = AnyAngle(replace(known, angles=flipped + 45), zeros_from=data, symmetries_from=data)(net)
    assert off["angle_error_mean"] == pytest.approx(45, abs=8)  # control
