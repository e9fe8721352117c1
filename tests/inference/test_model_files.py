import math

import pytest
from commands import save_network

import equicaps
from equicaps.errors import FileError
from equicaps.inference import save_model
from equicaps.inference.model_files import read_model


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("models") / "mine.safetensors")


def test_a_network_is_read_in_eval_mode(path):
    network, content = read_model(path)
    assert not any(module.training for module in network.modules())
    assert content["classes"] == list("0123456789")


@pytest.mark.parametrize("count", [9, 11])
def test_as_many_classes_as_the_network_has_are_needed(path, tmp_path, count):
    network, content = read_model(path)
    save_model(tmp_path / "other.safetensors", network, content | {"classes": [f"c{k}" for k in range(count)]})
    with pytest.raises(FileError, match=f"names {count} classes, but its network has 10"):
        read_model(tmp_path / "other.safetensors")


@pytest.mark.parametrize("zero", [math.nan, math.inf])
def test_zero_angles_that_are_not_numbers_are_refused(path, tmp_path, zero):
    network, content = read_model(path)
    save_model(tmp_path / "other.safetensors", network, content | {"zeros": [zero] * 10})
    with pytest.raises(FileError, match="zeros must be finite angles in degrees"):
        equicaps.load(tmp_path / "other.safetensors")
