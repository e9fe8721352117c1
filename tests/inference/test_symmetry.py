"""Classes that look the same after a part of a turn, read by a network that was never trained: its guarantees hold."""

import math
from dataclasses import replace

import pytest
import torch
from symmetric_shapes import MANY, ORDERS, SHAPES, shapes, untrained

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.inference.symmetry import (
    Symmetries,
    Symmetry,
    _Look,
    _symmetry,
    find_symmetries,
    pose_error,
    with_moments,
)
from equicaps.losses import true_poses
from equicaps.metrics import on_cpu, pose_errors


@pytest.fixture(scope="module")
def model():
    return PoseModel(untrained(), Card("test", "", "", SHAPES, (0.0,) * len(SHAPES), frame=32))


@pytest.fixture(scope="module")
def found(model):
    return find_symmetries(model.network, *shapes())


def orders(symmetries):
    return tuple(None if one is None else one.order for one in symmetries.classes)


def read(model, symmetries, images, labels):
    """The angle of each image, as its own class reads it."""
    with torch.no_grad():
        return symmetries.angles(model.network.capsules(images))[torch.arange(len(labels)), labels]


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_order_of_every_shape_is_found(model, noise):
    symmetries = find_symmetries(model.network, *shapes(noise))
    expected = ORDERS if not noise else (2, 3, 4, 6, symmetries.classes[4] and 0, None)  # noise may give a disc a pose
    assert orders(symmetries) == expected
    assert symmetries.periods.tolist()[:4] == [180, 120, 90, 60]


@pytest.mark.parametrize(("strength", "follows", "expected"), [
    (0.0005, True, Symmetry(0)), (0.004, True, None), (0.004, False, Symmetry(0)), (0.02, False, None),
])  # fmt: skip
def test_a_class_is_round_if_there_is_nothing_that_its_poses_could_follow(strength, follows, expected):
    """As strong as the moments of order 1, which follow; those of other orders are none. A trained network finds a pose
    in the noise of each image, and it follows when that image is rotated."""
    generator = torch.Generator().manual_seed(0)
    turns = math.tau * torch.rand(30, generator=generator)
    unit = torch.polar(torch.ones(30), math.tau * torch.rand(30, generator=generator))
    moments = torch.zeros(30, 6, 4, dtype=torch.complex64)
    moments[:, 0, 0] = strength * unit
    turned = moments * torch.polar(torch.ones(30), turns)[:, None, None]
    poses = unit * torch.polar(torch.ones(30), turns) if follows else unit.roll(1)
    looks = _Look(1, unit, moments, torch.ones(30)), _Look(1, poses, turned, torch.ones(30))
    assert _symmetry(*looks, turns, torch.full((30,), math.nan)) == expected


def test_a_class_of_few_images_is_left_alone(model):
    images, labels = shapes()
    assert find_symmetries(model.network, images[:4], labels[:4]) is None


def test_digits_have_no_symmetry():
    """Not even 0, 1 and 8, whose poses follow a rotation."""
    digits = embedded_digits("train").take(slice(0, 400))
    assert find_symmetries(load("digits").network, digits.images, digits.labels) is None
    assert find_symmetries(load("digits-plain").network, digits.images, digits.labels) is None


def test_angles_follow_a_rotation_modulo_the_period_and_upright_shapes_read_zero(model, found):
    images, labels = (part[: 4 * MANY] for part in shapes())
    periods = found.periods[labels]
    still = read(model, found, images, labels)
    assert still.abs().max() < 5
    degrees = 360 * torch.rand(len(images))
    off = (read(model, found, rotate(images, degrees, 32), labels) - still - degrees) % periods
    off = torch.minimum(off, periods - off)
    assert off.median() < 3
    assert off.max() < 12


def test_quarter_turns_are_exact(model, found):
    images, labels = (part[: 4 * MANY] for part in shapes(0.02))
    periods, still = found.periods[labels], read(model, found, images, labels)
    for quarters in (1, 2, 3):
        off = (read(model, found, torch.rot90(images, quarters, (-2, -1)), labels) - still - 90 * quarters) % periods
        assert torch.minimum(off, periods - off).max() < 0.01


def test_predictions_have_the_angle_and_the_period_of_their_class(model, found):
    images, _ = shapes()
    symmetric = PoseModel(model.network, replace(model.card, symmetries=found))
    seen, plain = symmetric.predict(images, batch_size=7), model.predict(images)
    assert torch.equal(seen.labels, plain.labels)
    assert torch.equal(seen.period, found.periods[seen.labels])
    expected = read(model, found, images, seen.labels)
    own = torch.where(seen.period == 360, plain.angles, expected)
    assert torch.equal(seen.angles.isnan(), own.isnan())
    turns = (seen.angles - own) / seen.period.clamp(min=1)
    assert (turns - turns.round()).nan_to_num().abs().max() < 1e-4
    assert (seen.angles.nan_to_num().abs() <= 180).all()
    assert [answer.period for answer in seen] == seen.period.tolist()
    assert plain.period is None
    assert {answer.period for answer in plain} == {360}


def test_an_image_without_the_shape_has_no_angle(model, found):
    assert read(model, found, torch.zeros(2, 1, 32, 32), torch.tensor([0, 3])).isnan().all()


def test_the_card_keeps_symmetries(found):
    from dataclasses import asdict
    from json import dumps, loads

    assert Symmetries.of(loads(dumps(asdict(found)))) == found
    with pytest.raises(ValueError, match="symmetries must have one entry for each of 1 classes, but have 6"):
        Card("test", "", "", ("a",), (0.0,), symmetries=found)
    for order, strength in ((1, 0.1), (7, 0.1), (2, math.nan)):
        with pytest.raises(ValueError, match="Symmetry: the order must be 0 or from 2 to 6"):
            Symmetry(order, strength, ((1.0, 0.0),))


def test_known_angles_say_what_upright_is(model, found):
    """Bars that lie at 30 degrees: read as upright without known angles, and as rotated with some."""
    images, labels = (part[:MANY] for part in shapes())
    angles = torch.full((MANY,), math.nan)
    angles[::4] = 30.0
    for known, expected in ((None, 0.0), (angles, 30.0)):
        symmetries = find_symmetries(model.network, images, labels, angles=known)
        assert read(model, symmetries, images, labels).mean().item() == pytest.approx(expected, abs=2)


def test_what_is_rotated_upright_does_not_depend_on_quarter_turns(model, found):
    """Noise gives a bar a pose, and of the two angles that the bar cannot tell apart the one near the pose is meant."""
    images, _ = (part[:MANY] for part in shapes(0.05))
    symmetric = PoseModel(model.network, replace(model.card, symmetries=Symmetries(found.layer, found.classes[:1] * 6)))
    still = symmetric.predict(images).angles
    assert (still.abs() > 90).any()
    for quarters in (1, 2, 3):
        off = (symmetric.predict(torch.rot90(images, quarters, (-2, -1))).angles - still - 90 * quarters) % 360
        assert torch.minimum(off, 360 - off).max() < 0.05


def test_outputs_with_gradients_are_interpreted(model, found):
    symmetric = PoseModel(model.network, replace(model.card, symmetries=found))
    output, layers = model.network.explain(shapes()[0][:3])
    assert output.scores.requires_grad
    torch.testing.assert_close(symmetric.interpret(output, layers).angles, symmetric.predict(shapes()[0][:3]).angles,
                               equal_nan=True, rtol=0, atol=1e-3)  # fmt: skip
    assert symmetric.interpret(output).angles[symmetric.interpret(output).period < 360].isnan().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"layer": 99}, "no layer 99"), ({"layer": -1}, "no layer -1"), ({"weights": ()}, "expected 24 pairs of weights")],
)
def test_symmetries_that_do_not_fit_the_network_are_refused(model, found, change, message):
    classes = tuple(one and replace(one, weights=change.get("weights", one.weights)) for one in found.classes)
    with pytest.raises(ValueError, match=message):
        PoseModel(model.network, replace(model.card, symmetries=Symmetries(change.get("layer", 1), classes)))


def test_moments_stand_in_for_the_poses_of_symmetric_classes(model, found):
    """They rotate as many times as fast as the image as there are positions that look the same."""
    images, labels = shapes()
    orders = found.orders[labels]
    assert found.orders.tolist() == [2, 3, 4, 6, 0, 1]
    degrees = 360 * torch.rand(len(images))
    still, rotated = (rotate(images, angles, 32) for angles in (torch.zeros_like(degrees), degrees))

    @torch.no_grad()
    def errors(network):
        before, after = (true_poses(network(view), labels) for view in (still, rotated))
        return pose_errors(before, after, degrees * orders)

    read, plain = errors(with_moments(model.network, found)), errors(on_cpu(model.network))
    symmetric = orders > 1
    assert (read[symmetric] / orders[symmetric]).median() < 3
    assert plain[symmetric].median() > 45  # control: the poses of these classes do not follow
    assert (read[orders == 0] == 180).all()
    assert torch.equal(read[orders == 1], plain[orders == 1])


def test_moments_change_nothing_but_poses_of_symmetric_classes(model, found):
    images, _ = shapes()
    with torch.no_grad():
        plain, read = model.network(images), with_moments(model.network, found)(images)
        same = with_moments(model.network, None)(images)
    for one, other in zip(plain[:2], read[:2], strict=True):
        torch.testing.assert_close(one, other)
    torch.testing.assert_close(read.poses[:, 5], plain.poses[:, 5])
    assert (read.poses[:, 4] == 0).all()
    assert torch.equal(same.poses, plain.poses)


def test_an_undefined_angle_is_half_a_period_off_and_round_classes_do_not_count():
    """Two positions in a turn: 90 degrees at most; six: 30."""
    found = pose_error(torch.tensor([180.0, 10.0, 180.0, 4.0, 180.0]), torch.tensor([6.0, 2.0, 0.0, 1.0, 2.0]))
    assert found == pytest.approx(((30 + 5 + 4 + 90) / 4, 5, 50.0))
    assert pose_error(torch.tensor([180.0]), torch.tensor([0.0])) is None
