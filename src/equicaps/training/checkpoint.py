"""The state of a training, saved in its folder."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as deserialise
from safetensors.torch import save as serialise
from torch import Tensor

from equicaps._checks import printable
from equicaps._files import rename
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError
from equicaps.training.config import TrainConfig

CHECKPOINT, PREVIOUS = "checkpoint.safetensors", "previous.safetensors"
DAMAGED = "damaged.safetensors"
_CONTENT = "content"

_log = logging.getLogger(__name__)


def save_checkpoint(folder: Path, tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> None:
    """Replace the checkpoint in one step; the one before it stays as ``previous.safetensors``."""
    write_tensors(folder / CHECKPOINT, "checkpoint", tensors, content, keep=folder / PREVIOUS)


def has_checkpoint(folder: Path) -> bool:
    """Whether the folder contains a training to resume."""
    return (folder / CHECKPOINT).exists() or (folder / PREVIOUS).exists()


def load_checkpoint(folder: Path, *, set_aside: bool = False) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The latest checkpoint that is intact.

    Args:
        folder: the folder of the training.
        set_aside: rename a damaged checkpoint to ``damaged.safetensors``; otherwise the next checkpoint to be saved
            would make it the previous one, in place of the intact one.
    """
    if not has_checkpoint(folder):
        raise FileError(f"{folder} contains no training: there is neither a {CHECKPOINT} nor a {PREVIOUS}.")
    if not (folder / CHECKPOINT).exists():  # killed between the two renames
        return read_tensors(folder / PREVIOUS, "checkpoint")
    try:
        return read_tensors(folder / CHECKPOINT, "checkpoint")
    except DamagedFileError as error:
        if not (folder / PREVIOUS).exists():
            raise
        _log.warning("%s", printable(f"{error} Going back to {folder / PREVIOUS}."))
    found = read_tensors(folder / PREVIOUS, "checkpoint")
    if set_aside:
        rename(folder / CHECKPOINT, folder / DAMAGED)
    return found


def saved_config(folder: Path) -> TrainConfig | None:
    """The settings of the training in this folder; None if it contains none."""
    return TrainConfig.from_dict(load_checkpoint(folder)[1]["config"]) if has_checkpoint(folder) else None


def pack(tensors: Mapping[str, Tensor], content: Mapping[str, Any]) -> bytes:
    """A checkpoint as bytes, to be sent to another process."""
    return serialise({**tensors, _CONTENT: torch.tensor(list(json.dumps(content).encode()), dtype=torch.uint8)})


def unpack(packed: bytes) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The inverse of :func:`pack`."""
    tensors = deserialise(packed)
    content = json.loads(tensors.pop(_CONTENT).numpy().tobytes())
    return tensors, content
