"""Shared by the tests of the commands."""

import torch

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.inference.model_files import save_model
from equicaps.metrics import class_zeros
from equicaps.models import Architecture, GroupCapsNet
from equicaps.training import Budget, TrainConfig


def save_network(path, preset="steerable", weights=None, mirror="distinguish"):
    torch.manual_seed(0)
    network = GroupCapsNet.from_preset(preset, mirror=mirror)
    digits = embedded_digits("train").take(slice(0, 64))
    ready = rotate(digits.images, torch.zeros(64), 32)
    network.train()(ready)
    if weights is not None:
        network.load_state_dict(weights)
    zeros = class_zeros(network.eval(), ready, digits.labels, classes=10)
    config = TrainConfig(Budget(steps=1), Architecture(preset, mirror=mirror)).to_dict()
    card = {"config": config, "classes": list("0123456789"), "data": "a few digits", "figures": {"accuracy": 10.0},
            "zeros": zeros, "frame": 28, "licence": "MIT", "task": "tells [digits]"}  # fmt: skip
    save_model(path, network, card)
    return path


def failed_cleanly(result, code, message):
    """One line, the right exit code, no stack trace."""
    assert result.exit_code == code, result.output
    assert message in result.stderr, result.stderr
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    return True
