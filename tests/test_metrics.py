import pytest
import torch

from equicaps.groups import SO2
from equicaps.metrics import accuracy, balanced_accuracy, exactness, pose_errors, wilson_interval
from equicaps.models import CapsOutput
from equicaps.training.evaluation import evaluate


def brightest_side(images):
    """An oracle network whose pose is the direction of the centre of mass."""
    n, _, size, _ = images.shape
    offsets = torch.arange(size, dtype=images.dtype) - (size - 1) / 2
    x = (images.sum((1, 2)) * offsets).sum(-1)
    y = -(images.sum((1, 3)) * offsets).sum(-1)
    pose = torch.nn.functional.normalize(torch.stack((x, y), -1), dim=-1)
    scores = torch.stack((images.sum((1, 2, 3)), torch.zeros(n)), -1)
    return CapsOutput(scores, torch.sigmoid(scores), pose.unsqueeze(1).expand(n, 2, 2))


def blobs(n=6):
    images = torch.zeros(n, 1, 28, 28)
    images[:, :, 12:16, 20:24] = 1
    return images, torch.zeros(n, dtype=torch.int64)


def test_accuracy_counts_both_outputs():
    output = CapsOutput(torch.tensor([[1.0, 0], [1, 0]]), torch.tensor([[0.0, 1], [0, 1]]), torch.zeros(2, 2, 2))
    assert accuracy(output, torch.tensor([0, 1])) == (50.0, 50.0)
    assert accuracy(output, torch.tensor([0, 0])) == (100.0, 0.0)


def test_pose_error_of_the_oracle_is_small_and_of_a_fixed_pose_is_large():
    """The paper's protocol: rotate each image by a random angle and compare the poses."""
    images, labels = blobs()
    good = evaluate(brightest_side, images, labels, size=32)
    assert good.pose_error.mean < 1
    assert good.accuracy.scores == 100

    def fixed(x):
        return brightest_side(x)._replace(poses=torch.tensor([1.0, 0.0]).expand(len(x), 2, 2))

    assert evaluate(fixed, images, labels, size=32).pose_error.mean > 20


@pytest.mark.parametrize(("turned", "expected"), [(90.0, 0.0), (100.0, 10.0), (270.0, 180.0), (85.0, 5.0)])
def test_pose_errors_are_the_degrees_between_the_poses_expected_and_found(turned, expected):
    def at(degrees):
        angle = torch.deg2rad(torch.tensor([degrees]))
        return torch.stack((angle.cos(), angle.sin()), -1)

    error = pose_errors(at(0.0), at(turned), torch.tensor([90.0]))
    assert error.item() == pytest.approx(expected, abs=1e-3)


def test_an_undefined_pose_is_an_error_of_180_degrees():
    assert pose_errors(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]), torch.zeros(1)).item() == 180


def test_exactness_measures_what_changes():
    images, _ = blobs()
    good = exactness(brightest_side, images)
    assert good.predictions_changed == 0
    assert max(good.scores, good.activations, good.poses) < 1e-4

    def bad(x):
        output = brightest_side(x)
        return output._replace(
            scores=output.scores * (x[:, 0, :14].sum((1, 2)) > x[:, 0, 14:].sum((1, 2))).float()[:, None] - 1
        )

    assert exactness(bad, images).scores > 1


def test_exactness_measures_what_mirroring_changes():
    """The direction to the centre of mass is mirrored; at 30 degrees from it, or with a mark on one side, it is not."""
    images, _ = blobs()
    images = images * torch.rand_like(images)
    good = exactness(brightest_side, images, mirrored=True)
    assert good.predictions_changed == 0
    assert max(good.scores, good.activations, good.poses) < 1e-4
    assert good.images == len(images)
    assert good.poses_defined == 100

    def turned(x):
        angle = torch.deg2rad(torch.tensor([30.0]))
        return brightest_side(x)._replace(poses=SO2().compose(SO2().exp(angle), brightest_side(x).poses))

    assert exactness(turned, images).poses < 1e-4
    assert exactness(turned, images, mirrored=True).poses > 0.5

    mark = torch.rand(28, 28)

    def marked(x):
        """A pattern compared at four angles: rotations do not change the sum."""
        found = sum((torch.rot90(x, quarters, (-2, -1)) * mark).sum((1, 2, 3)) for quarters in range(4))
        return brightest_side(x)._replace(scores=torch.stack((found, 0 * found), -1))

    assert exactness(marked, images).scores < 1e-4
    assert exactness(marked, images, mirrored=True).scores > 0.01


@pytest.mark.parametrize(
    ("right", "total", "expected"),
    [
        (81, 263, (25.53, 36.62)),  # Newcombe (1998), Table I: 0.2553 to 0.3662
        (15, 148, (6.24, 16.05)),
        (0, 20, (0.0, 16.11)),
        (1, 29, (0.61, 17.18)),
        (200, 200, (98.12, 100.0)),
    ],
)
def test_wilsons_interval_has_the_published_values(right, total, expected):
    assert wilson_interval(right, total) == pytest.approx(expected, abs=0.01)


def test_wilsons_interval_refuses_impossible_counts():
    for right, total in ((0, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match=f"but got {right} of {total}"):
            wilson_interval(right, total)


def test_balanced_accuracy_weights_all_classes_equally():
    labels = torch.tensor([0, 0, 0, 2])
    assert balanced_accuracy(torch.tensor([0, 0, 0, 1]), labels) == 50.0
    assert balanced_accuracy(labels, labels) == 100.0
