"""A loaded model is a PyTorch module, whatever one does to it, and takes images in any form."""

import copy
import io
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import equicaps
from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference import Answer, Card, PoseModel, save_model
from equicaps.inference.model_files import read_model
from equicaps.metrics import class_zeros
from equicaps.models import Architecture, CapsOutput, GroupCapsNet

CLASSES = tuple("abcdefghij")


def make_model(seed=0, preset="steerable", *, decoder=False, mirror="distinguish"):
    """An untrained model with settled statistics."""
    network = Architecture(preset, decoder=decoder, mirror=mirror).build(seed)
    network.train()(rotate(embedded_digits("train").images[:32], torch.zeros(32), 32))
    return PoseModel(network, Card("test", "", "", CLASSES, tuple(map(float, range(10))), frame=28))


@pytest.fixture
def model():
    return make_model(decoder=True)


@pytest.fixture(scope="module")
def images():
    return embedded_digits("test").images[:6]


def assert_same(actual, expected, atol=0.0):
    """Equal predictions: labels, confidences, angles and all outputs."""
    assert torch.equal(actual.labels, expected.labels)
    torch.testing.assert_close(actual.confidence, expected.confidence, rtol=0, atol=atol)
    torch.testing.assert_close(actual.angles, expected.angles, rtol=0, atol=100 * atol, equal_nan=True)
    torch.testing.assert_close(actual.output.poses, expected.output.poses, rtol=0, atol=atol)


def test_that_comparison_rejects_another_network(images):
    """Control: networks of different seeds predict differently."""
    with pytest.raises(AssertionError):
        assert_same(make_model(seed=1).predict(images), make_model().predict(images), atol=1e-4)


def test_a_loaded_model_is_a_module():
    model = equicaps.load("digits")
    assert isinstance(model, nn.Module)
    assert isinstance(model.network, GroupCapsNet)
    assert not model.training
    assert model.classes == tuple("0123456789")
    assert model.image_size == 32
    counts = model.network.parameter_counts()
    assert sum(p.numel() for p in model.parameters()) == sum(counts)
    assert repr(model) == (
        f"PoseModel('digits': 10 classes (0, 1, 2, 3, ...), images of 1 x 32 x 32, {counts[0]:,} parameters)"
    )


def test_forward_is_the_output_of_the_network(model):
    ready = torch.rand(2, 1, 32, 32)
    output, expected = model(ready), model.network(ready)
    assert isinstance(output, CapsOutput)
    assert output.reconstruction.shape == ready.shape
    for actual, value in zip(output, expected, strict=True):
        assert torch.equal(actual, value)
    assert make_model()(ready).reconstruction is None


def test_double_precision_predicts_the_same(model, images):
    """Predictions agree up to the rounding of float32, and are float32 either way."""
    single = model.predict(images)
    double = model.to(torch.float64).predict(images)
    assert next(model.parameters()).dtype == torch.float64
    assert double.confidence.dtype == torch.float32
    assert_same(double, single, atol=1e-4)
    assert not torch.equal(double.output.scores, single.output.scores)  # control: it was computed anew


def test_predict_does_not_depend_on_the_mode_and_restores_it(model, images):
    expected, state = model.predict(images), copy.deepcopy(model.state_dict())
    model.train()
    model.network.body.layers[0].eval()  # a part that its owner has frozen
    modes = [module.training for module in model.modules()]
    assert set(modes) == {True, False}
    assert_same(model.predict(images), expected)
    assert [module.training for module in model.modules()] == modes
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert not model.eval().training


def test_predict_restores_the_mode_after_an_error(model):
    model.train().network.body.register_forward_pre_hook(lambda *_: int("broken"))
    with pytest.raises(ValueError, match="broken"):
        model.predict(torch.rand(1, 32, 32))
    assert all(module.training for module in model.modules())


def test_a_state_dict_moves_the_weights_to_another_model(model, images):
    other = make_model(seed=1, decoder=True)
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert_same(other.predict(images), model.predict(images))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_predict_the_same_and_are_independent(model, images, duplicate):
    expected, other = model.predict(images), duplicate(model)
    assert other.card == model.card
    assert_same(other.predict(images), expected)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert_same(model.predict(images), expected)


def test_parameters_can_be_trained(model):
    """A step of plain PyTorch changes the weights, and no prediction has frozen them."""
    model.predict(torch.rand(1, 32, 32))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    output = model.train()(torch.rand(4, 1, 32, 32))
    (output.scores.square().mean() + output.reconstruction.mean()).backward()
    optimiser.step()
    changed = [not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True)]
    assert sum(changed) > len(changed) / 2


def test_a_prediction_is_a_sequence_of_answers(model, images):
    prediction = model.predict(images)
    answers = list(prediction)
    assert len(prediction) == len(answers) == 6
    assert all(isinstance(answer, Answer) for answer in answers)
    assert [answer.label for answer in answers] == prediction.names
    for number, answer in enumerate(answers):
        assert answer.confidence == prediction.confidence[number].item()
        assert answer.scores == dict(zip(CLASSES, prediction.output.scores[number].tolist(), strict=True))
        assert answer.agreement == max(answer.agreements.values()) == answer.agreements[answer.agreed_label]


def test_a_prediction_has_a_short_repr(model, images):
    prediction = model.predict(torch.cat((images, images[:2])))
    text = repr(prediction)
    assert text.startswith(f"Prediction({prediction.names[0]} ({prediction.confidence[0]:.1%}, ")
    assert text.count("%") == 6
    assert text.endswith("... 2 more)")
    assert repr(model.predict(torch.full((32, 32), 0.5))).endswith("%, –))")


def test_a_prediction_converts_to_json_with_none_for_missing_angles(model, images):
    blank = torch.full((1, 1, 28, 28), 0.5)
    found = json.loads(json.dumps(model.predict(torch.cat((images[:1], blank))).to_dict(), allow_nan=False))
    assert found["classes"] == list(CLASSES)
    digit, empty = found["answers"]
    assert digit["label"] in CLASSES
    assert -180 < digit["angle"] <= 180
    assert empty["angle"] is None
    assert empty["confidence"] > 0


@pytest.mark.parametrize("size", [(28, 28), (29, 36), (60, 41)], ids=str)
def test_a_mirror_image_has_the_same_class_and_the_mirrored_angle(images, size):
    """Mirroring takes the pose at α to 180° - α; from the zero z of its class, the angle r = α - z to 180° - 2z - r."""
    model = make_model(mirror="ignore")
    images = nn.functional.interpolate(images, size, mode="bilinear").clamp(0, 1)
    original, mirrored = model.predict(images), model.predict(images.flip(-1))
    assert torch.equal(mirrored.labels, original.labels)
    torch.testing.assert_close(mirrored.confidence, original.confidence, rtol=0, atol=1e-4)
    zeros = torch.tensor(model.card.zeros)[original.labels]
    off = (mirrored.angles - (180 - 2 * zeros - original.angles) + 180) % 360 - 180
    assert off.isfinite().any()
    assert off.nan_to_num(0.0).abs().max() < 0.01
    ordinary = make_model()
    changes = ordinary.predict(images).output.scores - ordinary.predict(images.flip(-1)).output.scores
    assert changes.abs().max() > 0.01


def test_if_upright_objects_are_symmetric_mirroring_reverses_the_angle(images):
    """Their poses lie on the axis of the mirror, z = 90° or -90°, so that 180° - 2z is 0°."""
    model = make_model(mirror="ignore")
    symmetric = model.prepare((images[:1] + images[:1].flip(-1)) / 2).expand(10, -1, -1, -1)
    zeros = class_zeros(model.network, symmetric, torch.arange(10), classes=10)
    assert [abs(zero) for zero in zeros] == pytest.approx([90] * 10, abs=0.01)
    model.card = replace(model.card, zeros=tuple(zeros))
    original, mirrored = model.predict(images), model.predict(images.flip(-1))
    torch.testing.assert_close(mirrored.angles, -original.angles, rtol=0, atol=0.05)
    assert original.angles.abs().max() > 5


def test_a_network_without_poses_gives_no_angles_and_no_agreements(images):
    prediction = make_model(preset="steerable_cnn").predict(images)
    assert prediction.angles.isnan().all()
    assert not prediction.has_poses
    for answer in prediction:
        assert answer.label in CLASSES
        assert answer.angle is answer.agreement is answer.agreed_label is answer.agreements is None


def forms(folder):
    """One coloured image in every form in which a person may have it."""
    drawing = np.random.default_rng(0).integers(0, 256, (41, 30, 3), dtype=np.uint8)
    picture, path, encoded = Image.fromarray(drawing), folder / "image.png", io.BytesIO()
    picture.save(path)
    picture.save(encoded, "PNG")
    tensor = torch.from_numpy(drawing).movedim(-1, 0).unsqueeze(0)
    return {
        "path": path,
        "str": str(path),
        "bytes": encoded.getvalue(),
        "Pillow": picture,
        "transparent Pillow": picture.convert("RGBA"),
        "array": drawing,
        "read-only array": np.asarray(picture),
        "array of floats": drawing / 255,
        "array of 16 bits": drawing.astype(np.uint16) * 257,
        "array of 16 bits, big-endian": (drawing.astype(np.uint16) * 257).astype(">u2"),
        "array with a batch axis": drawing[None],
        "flipped view of an array": drawing[::-1].copy()[::-1],
        "tensor": tensor,
        "tensor of floats": tensor / 255,
        "tensor that requires gradients": (tensor / 255).requires_grad_(),
        "list": [path],
        "tuple": (picture,),
    }


@pytest.mark.usefixtures("without_shape_checks")
def test_an_image_gives_the_same_prediction_in_every_form(model, tmp_path):
    found = forms(tmp_path)
    expected = model.predict(found["path"])
    assert len(expected) == 1
    for name, image in found.items():
        prediction = model.predict(image)
        assert prediction.names == expected.names, name
        torch.testing.assert_close(prediction.output.scores, expected.output.scores, rtol=0, atol=1e-3, msg=name)
        assert not prediction.output.scores.requires_grad
    many = model.predict(list(found.values())[:-2])
    assert len(many) == len(found) - 2
    torch.testing.assert_close(many.output.scores, expected.output.scores.expand(len(many), -1), rtol=0, atol=1e-3)
    other = model.predict(255 - found["array"])
    assert (other.output.scores - expected.output.scores).abs().max() > 1e-1  # control: another image


@pytest.mark.usefixtures("without_shape_checks")
def test_grey_images_give_the_same_prediction_in_every_form(model):
    grey = np.random.default_rng(1).integers(0, 256, (28, 28), dtype=np.uint8)
    expected = model.predict(torch.from_numpy(grey) / 255).output.scores
    picture = Image.fromarray(grey)
    sixteen = grey.astype(np.uint16) * 257
    for same in (grey, picture, picture.convert("RGB"), sixteen, Image.fromarray(sixteen), torch.from_numpy(sixteen)):
        torch.testing.assert_close(model.predict(same).output.scores, expected, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("without_shape_checks")
def test_images_of_different_sizes_are_predicted_together_but_not_set_upright_together(model):
    small, large = torch.rand(1, 1, 20, 20), torch.rand(2, 1, 50, 40)
    assert len(model.predict([small, large])) == 3
    assert model.upright([small, small]).shape == (2, 1, 20, 20)
    with pytest.raises(ValueError, match=r"must share one shape .* \(1, 20, 20\), \(1, 50, 40\); pass them one by one"):
        model.upright([small, large])


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (None, TypeError, "a file's path or bytes, or a sequence of those, but is NoneType"),
        ({"a": 1}, TypeError, "but is dict"),
        (np.zeros((28, 28), np.int32), TypeError, r"bytes \(uint8\), uint16 or floats .* dtype torch\.int32"),
        (np.zeros(28, np.uint8), ValueError, r"must have shape \(height, width\), .* but have \(28,\)"),
        (Image.new("F", (8, 8)), ValueError, "floating-point image.*convert it to 8 or 16 bits"),
        ("nowhere.png", FileNotFoundError, r"nowhere\.png"),
        (b"no image", OSError, "the image is not a readable image: its format is not known"),
    ],
    ids=["None", "dict", "integers", "one axis", "mode F", "missing file", "other bytes"],
)
def test_wrong_images_are_explained(model, wrong, error, message):
    with pytest.raises(error, match=message):
        model.predict(wrong)


def test_files_are_answered_in_order_even_if_they_repeat_or_cannot_be_read(model, tmp_path):
    good, broken, floats = tmp_path / "good.png", tmp_path / "broken.png", tmp_path / "floats.tiff"
    Image.fromarray(np.full((28, 28), 90, np.uint8)).save(good)
    broken.write_bytes(good.read_bytes()[:40])
    Image.new("F", (28, 28)).save(floats)
    paths = [good, broken, tmp_path / "missing.png", good, floats]
    for batch_size in (1, 5):
        found = list(model.predict_files(paths, batch_size=batch_size))
        assert [path for path, _ in found] == paths
        assert [isinstance(answer, OSError) for _, answer in found] == [False, True, True, False, True]
        assert found[0][1] == found[3][1]
    assert "floats.tiff is refused: the range of a floating-point image's values is unknown" in str(found[4][1])


def test_decoders_are_stored_in_half_precision_and_load_as_float32(model, images, tmp_path):
    """Predictions are the same to the bit; only the reconstruction is rounded."""
    path = tmp_path / "model.safetensors"
    config = {"model": {"preset": "steerable", "decoder": True}}
    zeros = list(model.card.zeros)
    save_model(
        path,
        model.network,
        {"config": config, "classes": list(CLASSES), "data": "", "figures": {}, "frame": 28, "zeros": zeros},
    )
    plain = tmp_path / "plain.pt"
    torch.save(model.state_dict(), plain)
    decoder = model.network.parameter_counts()[1]
    assert 1.9 * decoder < plain.stat().st_size - path.stat().st_size < 2.2 * decoder
    loaded = equicaps.load(path)
    assert {value.dtype for value in loaded.state_dict().values()} == {torch.float32, torch.int64}
    assert_same(loaded.predict(images), model.predict(images))
    ready = torch.rand(2, 1, 32, 32)
    drawn, original = loaded(ready).reconstruction, model(ready).reconstruction
    torch.testing.assert_close(drawn, original, rtol=0, atol=1e-3)
    assert not torch.equal(drawn, original)
    assert {value.dtype for value in read_model(path)[0].decoder.parameters()} == {torch.float32}
