import math

import jaxtyping
import pytest
import torch

from equicaps.groups import SO3
from equicaps.losses import (
    Objective,
    frame_consistency,
    known_angle_loss,
    pose_consistency,
    spread_loss,
    spread_margin,
    true_poses,
)
from equicaps.models import CapsOutput


def test_spread_loss_is_the_formula(dtype):
    """Σ_{i≠t} max(0, m - (a_t - a_i))², computed by hand for one image: (0.9 - 0.3)² + (0.9 - 0.5)²."""
    activations = torch.tensor([[0.8, 0.5, 0.3]], dtype=dtype)
    expected = (0.9 - 0.3) ** 2 + (0.9 - 0.5) ** 2
    torch.testing.assert_close(spread_loss(activations, torch.tensor([0]), 0.9).item(), expected, rtol=1e-5, atol=1e-6)


def test_shapes_in_signatures_are_checked_here():
    """Guard of tests/conftest.py, which leaves these checks out only in tests of the application."""
    with pytest.raises(jaxtyping.TypeCheckError):
        spread_loss(torch.zeros(3), torch.tensor([0]), 0.9)


def test_spread_loss_vanishes_beyond_the_margin():
    activations = torch.tensor([[1.0, 0.0, 0.05]])
    assert spread_loss(activations, torch.tensor([0]), 0.9).item() == pytest.approx(0, abs=1e-6)
    assert spread_loss(activations, torch.tensor([1]), 0.9).item() > 1


def test_margin_grows_linearly_and_stays_in_range():
    assert [spread_margin(x) for x in (-1.0, 0.0, 0.5, 1.0, 2.0)] == pytest.approx([0.2, 0.2, 0.55, 0.9, 0.9])


def test_pose_consistency_is_zero_for_poses_that_rotate_along_and_two_for_opposite_ones(dtype):
    degrees = torch.tensor([30.0, 200.0], dtype=dtype)
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=dtype)
    angles = torch.deg2rad(torch.tensor([30.0, 290.0], dtype=dtype))
    second = torch.stack((angles.cos(), angles.sin()), dim=-1)
    assert pose_consistency(first, second, degrees).item() == pytest.approx(0, abs=1e-6)
    assert pose_consistency(first, -second, degrees).item() == pytest.approx(2, abs=1e-6)


def rotations(degrees, dtype):
    """Rotations by these angles, each about an axis of its own."""
    axes = torch.nn.functional.normalize(torch.randn(len(degrees), 3, dtype=dtype), dim=-1)
    return SO3().exp(axes * torch.deg2rad(torch.tensor(degrees, dtype=dtype)).unsqueeze(-1))


@pytest.mark.parametrize("degrees", [0.0, 60.0, 180.0])
def test_frames_that_belong_together_cost_two_thirds_of_one_minus_the_cosine(degrees, dtype):
    """1 - tr(R)/3 = 2 (1 - cos θ)/3 for a rotation by θ about any axis; other pairs cost nothing."""
    first = SO3().random(1, dtype=dtype)
    poses = torch.cat((first, SO3().compose(rotations([degrees], dtype), first), SO3().random(1, dtype=dtype)))
    same = torch.tensor([[True, True, False], [True, True, False], [False, False, True]])
    expected = 2 * (1 - math.cos(math.radians(degrees))) / 3
    assert frame_consistency(poses, same).item() == pytest.approx(expected, abs=1e-6)


def test_a_frame_without_another_costs_nothing_and_undefined_ones_cost_one(dtype):
    poses = torch.zeros(2, 9, dtype=dtype, requires_grad=True)
    assert frame_consistency(poses, torch.eye(2, dtype=torch.bool)).item() == 0
    loss = frame_consistency(poses, torch.ones(2, 2, dtype=torch.bool))
    loss.backward()
    assert loss.item() == 1
    assert poses.grad.isfinite().all()


def shapes_output(poses):
    """Two classes; the poses of the first are given, and those of the second are all different."""
    scores = torch.zeros(len(poses), 2, dtype=poses.dtype)
    return CapsOutput(scores, scores, torch.stack((poses, SO3().random(len(poses), dtype=poses.dtype)), 1))


def test_only_upright_shapes_are_compared_with_other_shapes_of_their_class(dtype):
    """Two shapes, two views of each: the views agree, the shapes differ by 90 degrees."""
    first = SO3().random(1, dtype=dtype)
    poses = torch.cat((first, SO3().compose(rotations([90.0], dtype), first))).repeat(2, 1)
    clouds, labels, degrees = torch.zeros(4, 5, 3, dtype=dtype), torch.zeros(4, dtype=torch.long), torch.zeros(4)
    alone = {"cross_entropy": 0.0, "spread": 0.0, "consistency": 3.0}
    given = (shapes_output(poses), clouds, labels, degrees)
    assert Objective(**alone)(*given).item() == pytest.approx(0, abs=1e-6)
    # of six pairs, four are of different shapes, and each costs 2/3
    assert Objective(**alone, upright=True)(*given).item() == pytest.approx(3 * 4 / 6 * 2 / 3, abs=1e-5)
    other = (given[0], clouds, torch.tensor([0, 1, 0, 1]), degrees)  # two classes: only the views of a shape
    assert Objective(**alone, upright=True)(*other).item() > 0.1  # those of class 1 differ


def test_images_have_no_upright_shapes():
    scores, labels = torch.randn(4, 3), torch.tensor([0, 2, 0, 2])
    with pytest.raises(ValueError, match="`upright` is for shapes"):
        Objective(upright=True)(output(scores), torch.rand(4, 1, 2, 2), labels, torch.zeros(4))


def output(scores, poses=None):
    n, classes = scores.shape
    angles = torch.arange(n, dtype=scores.dtype) if poses is None else poses
    poses = torch.stack((angles.cos(), angles.sin()), -1).unsqueeze(1).expand(n, classes, 2)
    return CapsOutput(scores, torch.sigmoid(scores), poses, torch.full((n, 1, 2, 2), 0.5, dtype=scores.dtype))


def test_objective_is_the_weighted_sum_of_its_parts():
    scores, labels = torch.randn(4, 3), torch.tensor([0, 2, 0, 2])
    images, degrees = torch.rand(4, 1, 2, 2), torch.rand(4) * 360
    out = output(scores)
    parts = []
    for name in ("cross_entropy", "spread", "reconstruction", "consistency"):
        only = dict.fromkeys(("cross_entropy", "spread", "reconstruction", "consistency"), 0.0) | {name: 2.0}
        parts.append(Objective(**only)(out, images, labels, degrees, 0.5).item())
    together = Objective(cross_entropy=2.0, spread=2.0, reconstruction=2.0, consistency=2.0)(
        out, images, labels, degrees, 0.5
    )
    assert together.item() == pytest.approx(sum(parts), rel=1e-5)
    assert all(part > 0 for part in parts)


def test_consistency_compares_the_two_halves_of_the_batch():
    """Poses that rotate with the images cost nothing; one pose of two that is off by a half turn costs 2 / 2 = 1."""
    degrees = torch.tensor([0.0, 10.0, 90.0, 200.0])
    labels = torch.tensor([1, 0, 1, 0])
    following = output(torch.zeros(4, 2), torch.deg2rad(degrees + 17))
    only = Objective(cross_entropy=0.0, spread=0.0, consistency=1.0)
    images = torch.zeros(4, 1, 2, 2)
    assert only(following, images, labels, degrees).item() == pytest.approx(0, abs=1e-6)
    off = output(torch.zeros(4, 2), torch.deg2rad(degrees + torch.tensor([17.0, 17, 17, 197])))
    assert only(off, images, labels, degrees).item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("labels", [[0], [1, 0, 1], [0, 1, 1, 0]], ids=str)
def test_batches_that_are_not_two_views_of_each_image_are_refused(labels):
    out, images = output(torch.zeros(len(labels), 2)), torch.zeros(len(labels), 1, 2, 2)
    rest = images, torch.tensor(labels), torch.zeros(len(labels))
    with pytest.raises(ValueError, match=r"two views of each image.*Objective\(consistency=0\)"):
        Objective()(out, *rest)
    assert Objective(consistency=0.0)(out, *rest).isfinite()


def test_true_poses_are_the_poses_of_the_labels():
    out = output(torch.zeros(3, 2))
    assert true_poses(out, torch.tensor([0, 1, 1]))[2].tolist() == pytest.approx([math.cos(2), math.sin(2)])


def test_reconstruction_without_a_decoder_is_refused():
    out = output(torch.zeros(2, 2))._replace(reconstruction=None)
    images, labels, degrees = torch.zeros(2, 1, 2, 2), torch.zeros(2, dtype=torch.int64), torch.zeros(2)
    with pytest.raises(ValueError, match="needs a network with a decoder"):
        Objective(reconstruction=1.0)(out, images, labels, degrees)


def test_spread_loss_is_the_mean_over_the_batch():
    activations, labels = torch.rand(5, 3), torch.tensor([0, 1, 2, 0, 1])
    single = [spread_loss(activations[i : i + 1], labels[i : i + 1], 0.9).item() for i in range(5)]
    assert spread_loss(activations, labels, 0.9).item() == pytest.approx(sum(single) / 5, rel=1e-5)


PARTS = ("cross_entropy", "spread", "reconstruction", "consistency")


def only(name, weight=1.0, **settings):
    return Objective(**dict.fromkeys(PARTS, 0.0) | {name: weight}, **settings)


@pytest.fixture
def batch():
    torch.manual_seed(1)
    return output(torch.randn(4, 3)), torch.rand(4, 1, 2, 2), torch.tensor([0, 2, 0, 2]), torch.rand(4) * 360


@pytest.mark.parametrize("name", PARTS)
def test_each_part_is_proportional_to_its_weight(batch, name):
    assert only(name, 3.0)(*batch).item() == pytest.approx(3 * only(name)(*batch).item(), rel=1e-5)


@pytest.mark.parametrize("progress", [0.0, 0.5, 1.0])
def test_the_margin_of_the_objective_grows_between_its_two_values(batch, progress):
    out, _, labels, _ = batch
    expected = spread_loss(out.activations, labels, 0.1 + 0.4 * progress)
    assert only("spread", margin=(0.1, 0.5))(*batch, progress).item() == pytest.approx(expected.item(), rel=1e-5)


def test_cross_entropy_is_smoothed(batch):
    """(1 - s) of the target is the true class, and s is spread over all classes."""
    out, _, labels, _ = batch
    target = 0.8 * torch.nn.functional.one_hot(labels, 3) + 0.2 / 3
    expected = -(target * out.scores.log_softmax(-1)).sum(-1).mean()
    assert only("cross_entropy", label_smoothing=0.2)(*batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_reconstruction_is_the_mean_squared_error(batch):
    out, images, *_ = batch
    expected = (out.reconstruction - images).square().mean().item()
    assert only("reconstruction")(*batch).item() == pytest.approx(expected, rel=1e-5)


def test_true_poses_do_not_depend_on_the_prediction():
    poses = torch.nn.functional.normalize(torch.randn(3, 2, 2), dim=-1)
    out = output(torch.tensor([[9.0, 0.0]] * 3))._replace(poses=poses)
    assert torch.equal(true_poses(out, torch.tensor([1, 1, 0])), torch.stack((poses[0, 1], poses[1, 1], poses[2, 0])))


def test_known_angle_loss_is_the_mean_over_the_known_angles(dtype):
    """1 - ⟨p, e^{iθ}⟩: 0 for the true angle, 1 - cos 60° for one that is 60 degrees off; unknown ones do not count."""
    angles = torch.deg2rad(torch.tensor([30.0, 60.0, 123.0, -90.0], dtype=dtype))
    poses = torch.stack((angles.cos(), angles.sin()), -1)
    degrees = torch.tensor([30.0, 0.0, math.nan, math.nan], dtype=dtype)
    assert known_angle_loss(poses, degrees, 0.5).item() == pytest.approx(0.25, abs=1e-6)
    assert known_angle_loss(poses, degrees + 720, 0.5).item() == pytest.approx(0.25, abs=1e-4)
    assert known_angle_loss(poses, -degrees, 0.5).item() == pytest.approx(0.5, abs=1e-6)


def test_undefined_poses_and_unknown_angles_have_finite_gradients():
    """An undefined pose costs 1, and is drawn towards the true angle; unknown angles cost nothing."""
    poses = torch.zeros(2, 2, requires_grad=True)
    loss = known_angle_loss(poses, torch.tensor([90.0, math.nan]), 0.5)
    loss.backward()
    assert loss.item() == pytest.approx(1)
    assert poses.grad.tolist() == [pytest.approx([0, -1], abs=1e-6), [0, 0]]
    assert known_angle_loss(poses, torch.tensor([math.nan, math.nan]), 0.25).item() == 0
