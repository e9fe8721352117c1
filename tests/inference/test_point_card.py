"""The card of a model of shapes, and its file: what is written is read, and what is forged is refused."""

import json
import math

import pytest
import torch
from commands import save_network
from small_shapes import SOLIDS, parts, save_point_network

import equicaps
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError, UsageError
from equicaps.inference import POINT_CONVENTION, PointModel, PoseModel, load_image_model, save_model
from equicaps.inference.model_files import read_model, read_point_model
from equicaps.inference.point_card import PointCard

MIRROR = [-1.0, 0, 0, 0, 1, 0, 0, 0, 1]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_point_network(tmp_path_factory.mktemp("models") / "solids.safetensors")


def test_a_model_is_read_as_it_was_written(path):
    network, content = parts()
    model = equicaps.load(path)
    assert isinstance(model, PointModel)
    assert not model.network.training
    assert model.card == PointCard.of("solids", json.loads(json.dumps(content)))
    assert model.card.points == 300
    assert model.card.convention == POINT_CONVENTION
    clouds = SOLIDS.sample(300)
    torch.testing.assert_close(model(clouds).poses, network(clouds).poses, rtol=0, atol=0)


def test_the_convention_says_what_is_exact_and_what_is_not():
    for words in ("every rotation of space, up to rounding", "A mirror image is another shape", "upright is the mean"):
        assert words in POINT_CONVENTION


def test_each_kind_is_told_from_the_other(path, tmp_path):
    images = save_network(tmp_path / "digits.safetensors")
    assert isinstance(equicaps.load(images), PoseModel)
    assert isinstance(load_image_model(images), PoseModel)
    with pytest.raises(UsageError, match="is a model of shapes, but one that takes images is needed"):
        load_image_model(path)
    with pytest.raises(FileError, match="a network that takes shapes; expected one that takes images"):
        read_model(path)
    with pytest.raises(FileError, match="a network that takes images; expected one that takes shapes"):
        read_point_model(images)
    assert read_point_model(path)[1]["classes"] == list(SOLIDS.classes)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("forged", "message"),
    [
        ({"points": 0}, "points must be a whole number from 1"),
        ({"points": 10**9}, "points must be a whole number from 1"),
        ({"points": 2.5}, "points must be a whole number from 1"),
        ({"points": "many"}, "points must be a whole number from 1"),
        ({"uprights": [[0.0] * 9] * 4}, "nine numbers for each of 5 classes"),
        ({"uprights": [[0.0] * 8] * 5}, "nine numbers for each of 5 classes"),
        ({"uprights": [[math.nan] * 9] * 5}, "must be rotations of space"),
        ({"uprights": [[1e300] * 9] * 5}, "must be rotations of space"),
        ({"uprights": [MIRROR] * 5}, "must be rotations of space"),
        ({"uprights": [[1.0, *[0.0] * 8]] * 5}, "must be rotations of space"),
        ({"uprights": [[10**400] * 9] * 5}, "too large"),
        ({"uprights": 5}, "cannot read"),
        ({"angle_errors": [1.0]}, "one for each of 5 classes"),
        ({"angle_errors": [-1.0] * 5}, "finite and not negative"),
        ({"name": "../away"}, "valid file name"),
        ({"task": "\x1b[2J"}, "control characters"),
        ({"figures": {"accuracy": "all"}}, "figures must be numbers"),
    ],
)
def test_a_forged_card_is_refused(path, tmp_path, forged, message):
    tensors, content = read_tensors(path, "model")
    write_tensors(tmp_path / "other.safetensors", "model", tensors, content | forged)
    with pytest.raises(FileError, match=message):
        equicaps.load(tmp_path / "other.safetensors")


@pytest.mark.parametrize("missing", ["points", "uprights", "classes", "data", "figures"])
def test_a_card_without_what_it_needs_is_refused(path, tmp_path, missing):
    tensors, content = read_tensors(path, "model")
    del content[missing]
    write_tensors(tmp_path / "other.safetensors", "model", tensors, content)
    with pytest.raises(FileError, match=missing):
        equicaps.load(tmp_path / "other.safetensors")


def test_zero_and_faded_uprights_are_allowed():
    faded = tuple(0.8 * x for x in torch.eye(3).flatten().tolist())
    card = PointCard("x", "", "", ("a", "b"), ((0.0,) * 9, faded), angle_errors=(1.0, 2.0))
    assert card.upright_poses().shape == (2, 9)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"num_classes": 10**7}, "has weights .* of shape"),
        ({"preset": "pints"}, "unknown preset 'pints'"),
        ({"preset": "points-paper"}, "has no weights|has weights"),
        ({"depth": 3}, "cannot build"),
    ],
)
def test_a_forged_network_is_refused_before_memory_is_allocated(path, tmp_path, model, message):
    tensors, content = read_tensors(path, "model")
    config = content["config"] | {"model": content["config"]["model"] | model}
    write_tensors(tmp_path / "other.safetensors", "model", tensors, content | {"config": config})
    with pytest.raises(FileError, match=message):
        equicaps.load(tmp_path / "other.safetensors")


def test_damaged_weights_are_refused_by_name(path, tmp_path):
    tensors, content = read_tensors(path, "model")
    name = "body.classes.scalars"
    for weights, message in (
        (torch.full_like(tensors[name], torch.nan), "that are not finite numbers"),
        (tensors[name][:-1], "of shape"),
    ):
        write_tensors(tmp_path / "other.safetensors", "model", {**tensors, name: weights}, content)
        with pytest.raises(DamagedFileError, match=f"'{name}'.*{message}"):
            equicaps.load(tmp_path / "other.safetensors")
    content["classes"] = ["a", "b"]
    write_tensors(tmp_path / "other.safetensors", "model", tensors, content)
    with pytest.raises(FileError, match="names 2 classes, but its network has 5"):
        equicaps.load(tmp_path / "other.safetensors")
    half = path.read_bytes()
    (tmp_path / "half.safetensors").write_bytes(half[: len(half) // 2])
    with pytest.raises(FileError, match=r"half\.safetensors"):
        equicaps.load(tmp_path / "half.safetensors")


def test_both_presets_survive_the_file(tmp_path):
    network, content = parts("points-paper")
    save_model(tmp_path / "paper.safetensors", network, content)
    model = equicaps.load(tmp_path / "paper.safetensors")
    clouds = SOLIDS.sample(300)[:2]
    torch.testing.assert_close(model(clouds).scores, network(clouds).scores, rtol=0, atol=0)
