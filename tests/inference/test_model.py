import math

import pytest
import torch
from commands import save_network
from PIL import Image

import equicaps
from equicaps.data import embedded_digits
from equicaps.errors import NotFoundError, UnansweredError
from equicaps.images import rotate
from equicaps.images.preparation import ImageFormat, prepare
from equicaps.inference import Answer, Card, PoseModel
from equicaps.metrics import class_zeros
from equicaps.models import CapsOutput, GroupCapsNet


@pytest.fixture(scope="module")
def model():
    """An untrained network with settled statistics: its labels mean nothing, but its guarantees hold."""
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset("steerable")
    network.train()(rotate(embedded_digits("train").images[:64], torch.zeros(64), 32))
    card = Card("test", "", "", tuple("abcdefghij"), tuple(map(float, range(0, 100, 10))), frame=28)
    return PoseModel(network, card)


def digits(count, size):
    """Digits as bytes, of any size."""
    images = embedded_digits("test").images[:count]
    resized = torch.nn.functional.interpolate(images, size, mode="bilinear", antialias=True)
    return (resized.clamp(0, 1) * 255).round().to(torch.uint8)


@pytest.mark.parametrize("size", [(28, 28), (32, 32), (57, 57), (64, 100), (41, 30)], ids=str)
def test_labels_do_not_change_and_angles_rotate_with_the_image(model, size):
    images = digits(20, size)
    still = model.predict(images)
    for quarters in (1, 2, 3):
        turned = model.predict(torch.rot90(images, quarters, (-2, -1)))
        assert torch.equal(turned.labels, still.labels)
        torch.testing.assert_close(turned.confidence, still.confidence, atol=1e-4, rtol=0)
        defined = ~still.angles.isnan()
        difference = (turned.angles - still.angles - 90 * quarters)[defined]
        assert defined.any()
        assert (180 - (180 - difference) % 360).abs().max() < 0.1


def test_angles_are_relative_to_the_zero_of_the_class(model):
    poses = torch.zeros(2, 10, 2)
    poses[:, 3] = torch.tensor([math.cos(math.radians(75)), math.sin(math.radians(75))])
    scores = torch.nn.functional.one_hot(torch.tensor([3, 2]), 10).float()
    prediction = model.interpret(CapsOutput(scores, torch.zeros(2, 10), poses))
    assert prediction.angles[0].item() == pytest.approx(45, abs=1e-3)
    assert prediction.angles[1].isnan().item()  # class 2 has no pose


def test_an_image_and_its_quarter_turns_have_the_same_upright_image(model):
    images = digits(20, (28, 28))
    upright = model.upright(images)
    for quarters in (1, 2, 3):
        torch.testing.assert_close(model.upright(torch.rot90(images, quarters, (-2, -1))), upright, atol=2e-3, rtol=0)
    assert (upright - images / 255).abs().max() > 0.1  # control: images are rotated


def test_an_image_without_a_pose_is_not_rotated(model):
    blank = torch.full((2, 32, 32), 0.5)
    assert model.predict(blank).angles.isnan().all()
    torch.testing.assert_close(model.upright(blank), blank.unsqueeze(1))


def test_grey_colour_bytes_and_floats_give_the_same_prediction(model):
    images = digits(5, (28, 28))
    grey = model.predict(images)
    for same in (images[:, 0], images.float() / 255, images.expand(-1, 3, -1, -1), images.double() / 255):
        torch.testing.assert_close(model.predict(same).confidence, grey.confidence, atol=1e-4, rtol=0)
    assert model.predict(images[0, 0]).labels.shape == (1,)
    assert grey.names == [model.card.classes[k] for k in grey.labels]


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_images_are_explained(model):
    with pytest.raises(
        TypeError, match=r"must be a torch\.Tensor, a numpy array, .* or a sequence of those, but is float"
    ):
        model.predict([[0.0]])
    with pytest.raises(ValueError, match="the sequence is empty"):
        model.predict([])
    with pytest.raises(TypeError, match=r"bytes \(uint8\), uint16 or floats in \[0, 1\], but have dtype torch.int64"):
        model.predict(torch.zeros(28, 28, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"with 1, 3 or 4 channels, but have \(1, 2, 28, 28\)"):
        model.predict(torch.zeros(1, 2, 28, 28))
    with pytest.raises(ValueError, match="NaN or infinite pixels"):
        model.predict(torch.full((28, 28), torch.nan))
    with pytest.raises(ValueError, match="have no pixels"):
        model.predict(torch.zeros(2, 0, 28))


def test_unknown_models_are_refused_with_a_list_of_the_known_ones(tmp_path):
    known = "digits, digits-paper, digits-upright, digits-plain, modelnet10"
    with pytest.raises(NotFoundError, match=f"no model 'digitz': give one of {known}, or"):
        equicaps.load("digitz")
    with pytest.raises(NotFoundError, match=r"holds no model\.safetensors"):
        equicaps.load(tmp_path)
    with pytest.raises(AttributeError, match="has no attribute 'lood'"):
        equicaps.lood  # noqa: B018


def test_zeros_are_the_mean_angles_of_upright_images():
    angles = torch.deg2rad(torch.tensor([10.0, 30.0, -170.0, 170.0]))
    poses = torch.stack((angles.cos(), angles.sin()), -1).unsqueeze(1).expand(-1, 3, 2)
    labels = torch.tensor([0, 0, 1, 1])

    def network(images):
        return CapsOutput(torch.zeros(4, 3), torch.zeros(4, 3), poses)

    zeros = class_zeros(network, torch.zeros(4, 1, 2, 2), labels, classes=3)
    assert zeros[0] == pytest.approx(20, abs=1e-3)
    assert abs(zeros[1]) == pytest.approx(180, abs=1e-3)
    assert zeros[2] == 0


def test_zeros_are_measured_from_known_angles_where_there_are_any():
    """Poses minus known angles: 100 - 90 and 10 - 340; the other class has none: its images count as upright."""
    angles = torch.deg2rad(torch.tensor([100.0, 10.0, 77.0, 20.0, 30.0]))
    poses = torch.stack((angles.cos(), angles.sin()), -1).unsqueeze(1).expand(-1, 2, 2)

    def network(images):
        return CapsOutput(torch.zeros(5, 2), torch.zeros(5, 2), poses)

    known = torch.tensor([90.0, 340.0, *[math.nan] * 3])
    labels = torch.tensor([0, 0, 0, 1, 1])
    zeros = class_zeros(network, torch.zeros(5, 1, 2, 2), labels, classes=2, angles=known)
    assert zeros == pytest.approx([20, 25], abs=1e-3)


def test_a_card_needs_a_zero_for_every_class():
    with pytest.raises(ValueError, match="one angle for each of 2 classes, but has 1"):
        Card("x", "", "", ("a", "b"), (0.0,))


def test_values_out_of_range_are_not_ignored_silently(model):
    with pytest.warns(UserWarning, match=r"expected in \[0, 1\], but range from 0 to 255"):
        model.predict(digits(1, (28, 28)).float())


@pytest.mark.parametrize("frame", [27, 28])
def test_any_frame_is_padded_to_the_size(frame):
    assert prepare(torch.rand(1, 1, 50, 50), ImageFormat(1, 32, frame)).shape == (1, 1, 32, 32)


def test_zeros_are_0_where_upright_images_do_not_agree():
    angles = torch.deg2rad(torch.tensor([0.0, 120.0, 240.0, 10.0]))
    poses = torch.stack((angles.cos(), angles.sin()), -1).unsqueeze(1)

    def network(images):
        return CapsOutput(torch.zeros(4, 1), torch.zeros(4, 1), poses)

    assert class_zeros(network, torch.zeros(4, 1, 2, 2), torch.zeros(4, dtype=torch.int64), classes=1) == [0.0]


def test_an_odd_frame_is_centred_between_pixels():
    """Preparation matches what the training does, and commutes with quarter turns."""
    images = torch.rand(3, 1, 27, 27)
    ready = prepare(images, ImageFormat(1, 32, 27))
    torch.testing.assert_close(ready, rotate(images, torch.zeros(3), 32))
    turned = prepare(torch.rot90(images, 1, (-2, -1)), ImageFormat(1, 32, 27))
    torch.testing.assert_close(turned, torch.rot90(ready, 1, (-2, -1)))


def test_a_trained_model_is_named_after_its_folder(tmp_path, monkeypatch):
    """Every training writes a file of the same name, ``model.safetensors``."""
    path = save_network(tmp_path / "mine.safetensors")
    assert equicaps.load(path).card.name == "mine"
    (tmp_path / "bolts").mkdir()
    path = path.rename(tmp_path / "bolts" / "model.safetensors")
    monkeypatch.chdir(tmp_path / "bolts")
    assert {equicaps.load(given).card.name for given in (path, path.parent, "model.safetensors", ".")} == {"bolts"}


def test_half_a_turn_is_plus_180_degrees(model):
    """Angles lie in (-180, 180]."""
    poses = torch.tensor([-1.0, 0.0]).expand(1, 10, 2)
    output = CapsOutput(torch.eye(10)[:1], torch.zeros(1, 10), poses)
    assert model.card.zeros[0] == 0
    assert model.interpret(output).angles.tolist() == [180.0]


def test_a_prediction_does_not_depend_on_how_many_images_pass_at_once(model):
    images = digits(7, (28, 28))
    whole, parts = model.predict(images), model.predict(images, batch_size=2)
    assert len(parts) == 7
    assert torch.equal(parts.labels, whole.labels)
    torch.testing.assert_close(parts.confidence, whole.confidence, atol=1e-5, rtol=0)
    torch.testing.assert_close(parts.output.scores.softmax(-1).amax(-1), parts.confidence)


def test_what_is_not_finite_is_no_answer(model, tmp_path, monkeypatch):
    """Of three images the network overflows on the second: the batch has no answer, the two other files have one."""
    classify = model.network.classify

    def overflow(images):
        output = classify(images)
        bright = images.flatten(1).mean(1) > 0.9
        return output._replace(activations=torch.where(bright[:, None], torch.inf, output.activations))

    monkeypatch.setattr(model.network, "classify", overflow)
    images = torch.rand(3, 1, 32, 32) / 2
    images[1] = 1.0
    images[:, :, 16, 16] = 0.5
    with pytest.raises(UnansweredError, match="no answer for image 2 of 3: what it computes is not a finite number"):
        model.predict(images)
    files = [tmp_path / f"{number}.png" for number in range(3)]
    for file, image in zip(files, images, strict=True):
        Image.fromarray((image[0] * 255).byte().numpy()).save(file)
    kinds = [type(answer) for _, answer in model.predict_files(files)]
    assert kinds == [Answer, UnansweredError, Answer]


@pytest.mark.parametrize("part", ["scores", "activations", "poses"])
def test_every_part_of_an_answer_must_be_finite(model, part):
    output = model.network.classify(torch.rand(2, 1, 32, 32))
    getattr(output, part)[1, 3] = torch.nan
    with pytest.raises(UnansweredError, match="image 2 of 2"):
        model.interpret(output.map(torch.clone))
