"""A part of a set represents all of it, whatever its order."""

import pytest
import torch
from small_training import config, digits, network

from equicaps.models.output import CapsOutput
from equicaps.training import AnyAngle, AsTheyAre, Intervals, LookOnce, zeros
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
    evaluation = protocol(in_the_order_of_classes())
    assert in_the_order_of_classes().labels[:9].tolist() == [0] * 9  # guard: the first nine are one class
    found = evaluation(FirstClass(), 9)
    assert found["images"] == 9
    assert found["accuracy"] == pytest.approx(100 / 3)
    assert evaluation(FirstClass(), None)["images"] == 30


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
    evaluation = LookOnce(AnyAngle(digits(12)), AnyAngle(digits(30)))
    assert evaluation(FirstClass(), 6)["images"] == 6
    last = evaluation(FirstClass(), None)
    assert (last["images"], last["validation_images"]) == (30, 12)
