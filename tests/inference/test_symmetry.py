"""Classes that look the same after a part of a turn, read by a network that was never trained: its guarantees hold."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Card, PoseModel
from equicaps.inference.symmetry import Symmetries, Symmetry, find_symmetries
from equicaps.models import GroupCapsNet

SHAPES = ("bar", "triangle", "square", "hexagon", "washer", "arrow")
ORDERS = (2, 3, 4, 6, 0, None)
MANY = 20


def polygon(corners):
    return [(math.cos(math.tau * k / corners), math.sin(math.tau * k / corners)) for k in range(corners)]


def drawn(shape, size, noise=0.0, seed=0):
    """A shape in an image of 32x32 pixels, drawn eight times as large and reduced."""
    image = Image.new("L", (256, 256))
    pen = ImageDraw.Draw(image)
    outlines = {
        "bar": [(-1, -0.35), (1, -0.35), (1, 0.35), (-1, 0.35)],
        "triangle": polygon(3), "square": polygon(4), "hexagon": polygon(6),
        "arrow": [(-1, -0.2), (0.2, -0.2), (0.2, -0.5), (1, 0), (0.2, 0.5), (0.2, 0.2), (-1, 0.2)],
    }  # fmt: skip
    if shape == "washer":
        for radius, shade in ((size, 255), (size // 2, 0)):
            pen.ellipse((128 - radius, 128 - radius, 127 + radius, 127 + radius), fill=shade)
    else:
        pen.polygon([(127.5 + size * x, 127.5 - size * y) for x, y in outlines[shape]], fill=255)
    pixels = np.asarray(image.resize((32, 32), Image.Resampling.BOX)) / 255
    pixels = pixels + np.random.default_rng(seed).normal(0, noise, pixels.shape)
    return torch.from_numpy(pixels.clip(0, 1).astype(np.float32))[None]


def shapes(noise=0.0):
    images = [drawn(name, 65 + k, noise, 100 * label + k) for label, name in enumerate(SHAPES) for k in range(MANY)]
    return torch.stack(images), torch.arange(len(SHAPES)).repeat_interleave(MANY)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset("steerable", num_classes=len(SHAPES))
    images, _ = shapes()
    with torch.no_grad():
        for _ in range(20):
            network.train()(rotate(images, 360 * torch.rand(len(images)), 32))
    return PoseModel(network, Card("test", "", "", SHAPES, (0.0,) * len(SHAPES), frame=32))


@pytest.fixture(scope="module")
def found(model):
    return find_symmetries(model, *shapes())


def orders(symmetries):
    return tuple(None if one is None else one.order for one in symmetries.classes)


def read(model, symmetries, images, labels):
    """The angle of each image, as its own class reads it."""
    with torch.no_grad():
        return symmetries.angles(model.network.capsules(images))[torch.arange(len(labels)), labels]


@pytest.mark.parametrize("noise", [0.0, 0.03])
def test_the_order_of_every_shape_is_found(model, noise):
    symmetries = find_symmetries(model.eval(), *shapes(noise))
    expected = ORDERS if not noise else (2, 3, 4, 6, symmetries.classes[4] and 0, None)  # noise may give a disc a pose
    assert orders(symmetries) == expected
    assert symmetries.periods.tolist()[:4] == [180, 120, 90, 60]


def test_a_class_of_few_images_is_left_alone(model):
    images, labels = shapes()
    assert find_symmetries(model.eval(), images[:4], labels[:4]) is None


def test_digits_have_no_symmetry():
    """Not even 0, 1 and 8, whose poses follow a rotation."""
    digits = embedded_digits("train").take(slice(0, 400))
    assert find_symmetries(load("digits"), digits.images, digits.labels) is None
    assert find_symmetries(load("digits-plain"), digits.images, digits.labels) is None


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
        symmetries = find_symmetries(model, images, labels, angles=known)
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
