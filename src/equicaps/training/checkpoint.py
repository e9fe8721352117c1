"""The state of a training in a folder, and the trained model."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from equicaps.models import GroupCapsNet
from equicaps.training.config import Model, Number
from equicaps.training.errors import CheckpointError, DamagedCheckpointError
from equicaps.training.files import read_tensors, rename, write_tensors

CHECKPOINT, PREVIOUS, MODEL = "checkpoint.safetensors", "previous.safetensors", "model.safetensors"
DAMAGED = "damaged.safetensors"
_CONTENT = "content"

_log = logging.getLogger(__name__)


class TrainedModel(NamedTuple):
    """A network in eval mode and what is known about it."""

    network: GroupCapsNet
    classes: tuple[str, ...]
    data: str
    figures: dict[str, Number]
    config: dict[str, Any]
    content: dict[str, Any]
    """All that the file says, for model cards."""


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> None:
    """Replace the checkpoint in one step; the one before stays as ``previous.safetensors``."""
    write_tensors(folder / CHECKPOINT, "checkpoint", tensors, content, keep=folder / PREVIOUS)


def has_checkpoint(folder: Path) -> bool:
    """Whether there is a training to resume."""
    return (folder / CHECKPOINT).exists() or (folder / PREVIOUS).exists()


def load_checkpoint(folder: Path, *, set_aside: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The latest checkpoint that is whole.

    Args:
        folder: of the run.
        set_aside: rename a damaged checkpoint to ``damaged.safetensors``, so that the next one to be saved does not
            put it in the place of the whole one before.
    """
    if not has_checkpoint(folder):
        raise CheckpointError(f"{folder} holds no training: neither {CHECKPOINT} nor {PREVIOUS} is there.")
    if not (folder / CHECKPOINT).exists():  # killed between the two renames
        return read_tensors(folder / PREVIOUS, "checkpoint")
    try:
        return read_tensors(folder / CHECKPOINT, "checkpoint")
    except DamagedCheckpointError as error:
        if not (folder / PREVIOUS).exists():
            raise
        _log.warning("%s Going back to %s.", error, folder / PREVIOUS)
    found = read_tensors(folder / PREVIOUS, "checkpoint")
    if set_aside:
        rename(folder / CHECKPOINT, folder / DAMAGED)
    return found


def pack(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> bytes:
    """A checkpoint as bytes, to be sent to another process."""
    return serialise({**tensors, _CONTENT: torch.tensor(list(json.dumps(content).encode()), dtype=torch.uint8)})


def unpack(packed: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of :func:`pack`."""
    tensors = deserialise(packed)
    content = json.loads(tensors.pop(_CONTENT).numpy().tobytes())
    return tensors, content


def save_model(path: Path, network: GroupCapsNet, content: Mapping[str, Any]) -> None:
    """Weights alone with their description: a config with ``model``, and ``classes``, ``data``, ``figures``."""
    write_tensors(path, "model", network.state_dict(), content)


def load_model(path: Path | str) -> TrainedModel:
    """A trained network from ``model.safetensors``."""
    tensors, content = read_tensors(Path(path), "model")
    try:
        network = Model(**content["config"]["model"]).build(seed=0)
        network.load_state_dict(tensors)
        classes, config = tuple(map(str, content["classes"])), dict(content["config"])
        data, figures = str(content["data"]), dict(content["figures"])
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(f"{path} holds a network that this equicaps cannot build: {reason}") from error
    if len(classes) != network.body.config.num_classes:
        raise CheckpointError(
            f"{path} names {len(classes)} classes, but its network has {network.body.config.num_classes}."
        )
    network.eval()
    return TrainedModel(network, classes, data, figures, config, content)
