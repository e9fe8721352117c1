import copy
import math
import re
import subprocess
import sys

import pytest
import torch
from commands import save_network

import equicaps
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError
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


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_refused_by_name(path, tmp_path, value):
    network, content = read_model(path)
    with torch.no_grad():
        network.body.layers[1].weight[0, 0, 0] = value
    save_model(tmp_path / "other.safetensors", network, content)
    with pytest.raises(DamagedFileError, match=r"weights 'body\.layers\.1\.weight' that are not finite numbers"):
        read_model(tmp_path / "other.safetensors")


def test_weights_that_only_float64_can_hold_are_refused_by_name(path, tmp_path):
    """In the network they would be infinite."""
    tensors, content = read_tensors(path, "model")
    name = "body.layers.1.weight"
    for value in (1e30, 1e300):
        other = {**tensors, name: torch.full_like(tensors[name], value, dtype=torch.float64)}
        write_tensors(tmp_path / "other.safetensors", "model", other, content)
        if value < 1e38:  # control
            read_model(tmp_path / "other.safetensors")
    with pytest.raises(DamagedFileError, match=r"weights 'body\.layers\.1\.weight' that are not finite numbers"):
        read_model(tmp_path / "other.safetensors")


@pytest.mark.parametrize(
    "card",
    [{"zeros": [10**400] * 10}, {"angle_errors": {"by_class": [10**400] * 10, "rough": [1.0], "errors": [1.0]}}],
    ids=["zeros", "errors"],
)
def test_numbers_that_no_float_can_hold_are_refused(path, tmp_path, card):
    tensors, content = read_tensors(path, "model")
    write_tensors(tmp_path / "other.safetensors", "model", tensors, content | card)
    with pytest.raises(FileError, match=r"other\.safetensors"):
        equicaps.load(tmp_path / "other.safetensors")


def test_endless_names_of_weights_are_shortened(path, tmp_path):
    tensors, content = read_tensors(path, "model")
    write_tensors(tmp_path / "other.safetensors", "model", tensors | {"x" * 10**6: torch.zeros(1)}, content)
    with pytest.raises(DamagedFileError, match="does not have") as caught:
        read_model(tmp_path / "other.safetensors")
    assert len(str(caught.value)) < 1000


def harmed(network, name, harm):
    tensors = dict(network.state_dict())
    tensors[name] = harm(tensors[name])
    return {key: tensor for key, tensor in tensors.items() if tensor is not None}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda weight: weight[:-1], r"of shape \(.*\) and type torch.float32, but the network that it describes has"),
        (lambda weight: weight.long(), r"type torch.int64, but the network that it describes has .* and torch.float32"),
        (lambda weight: None, r"no weights 'body\.layers\.0\.weight', which the network that it describes needs"),
    ],
    ids=["another shape", "another type", "missing"],
)
def test_weights_that_do_not_fit_the_card_are_refused_by_name(path, tmp_path, harm, message):
    network, content = read_model(path)
    write_tensors(tmp_path / "other.safetensors", "model", harmed(network, "body.layers.0.weight", harm), content)
    with pytest.raises(DamagedFileError, match=message):
        read_model(tmp_path / "other.safetensors")


def test_weights_that_the_network_does_not_have_are_refused_by_name(path, tmp_path):
    network, content = read_model(path)
    write_tensors(tmp_path / "other.safetensors", "model", network.state_dict() | {"x": torch.zeros(1)}, content)
    with pytest.raises(DamagedFileError, match="weights 'x', which the network that it describes does not have"):
        read_model(tmp_path / "other.safetensors")


CLAIMS = {
    "classes": ({"num_classes": 10**7}, "has weights .* of shape"),
    "channels": ({"in_channels": 10**9}, "has weights .* of shape"),
    "size": ({"image_size": 10**5}, "at most 1024 is allowed"),
    "decoder": ({"decoder": True, "image_size": 1024}, "has no weights 'decoder"),
}
READ_ALL = """
import resource, sys
from equicaps.inference.model_files import read_model
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**30,) * 2)
for path in sys.argv[1:]:
    try:
        read_model(path)
    except OSError as error:
        print(type(error).__name__, error)
"""


def test_a_card_cannot_ask_for_more_memory_than_its_file_has(path, tmp_path):
    """In a process that may not have another gigabyte: the size is refused, and not the lack of memory."""
    network, content = read_model(path)
    for name, (claim, _) in CLAIMS.items():
        changed = copy.deepcopy(content)
        changed["config"]["model"] |= claim
        save_model(tmp_path / name, network, changed)
    command = [sys.executable, "-c", READ_ALL, *(str(tmp_path / name) for name in CLAIMS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line, (_, message) in zip(done.stdout.splitlines(), CLAIMS.values(), strict=True):
        assert re.search(message, line), line
    assert "memory" not in done.stdout


def test_a_frame_that_no_memory_holds_is_refused(path, tmp_path):
    network, content = read_model(path)
    save_model(tmp_path / "other.safetensors", network, content | {"frame": 10**6})
    with pytest.raises(FileError, match="frame must be at most 1024 pixels, but is 1000000"):
        equicaps.load(tmp_path / "other.safetensors")
