"""Files of trained models: those shipped with the package and those that a training writes."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError, NotFoundError
from equicaps.inference.card import Card
from equicaps.inference.model import PoseModel
from equicaps.models import Architecture, GroupCapsNet

SHIPPED = ("digits", "digits-paper", "digits-upright", "digits-plain")
"""The models that come with the package."""
MODEL = "model.safetensors"
"""The file that a training writes into its folder."""


LARGEST_SIDE = 1024
"""Networks for larger images are refused, because the memory that they take does not depend on the size of the file."""


def load(name: str | Path) -> PoseModel:
    """Load a trained model: one of :data:`SHIPPED`, the ``model.safetensors`` of a training, or its folder.

    ``model.predict(images)`` gives ``labels``, ``confidence`` and ``angles``; ``model.network`` is the
    :class:`GroupCapsNet`, and ``model.card`` says what is known about it.
    """
    path = _find(name)
    network, content = read_model(path)
    stem = path.resolve().parent.name if path.name == MODEL else path.stem  # every training writes that name
    try:
        card = Card.of(stem, content)
        if card.frame > LARGEST_SIDE:
            raise ValueError(f"frame must be at most {LARGEST_SIDE} pixels, but is {card.frame}.")
        return PoseModel(network, card)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} has a card that this equicaps cannot read: {_brief(error)}") from error


def save_model(path: Path, network: GroupCapsNet, content: Mapping[str, Any]) -> None:
    """Write a network's weights with its description, from which :meth:`Card.of` builds the card.

    Decoders are stored in half precision, because no prediction depends on them.

    Args:
        path: the file to write.
        network: the trained network.
        content: the description: ``config`` (with the arguments of the architecture under ``model``), ``classes``,
            ``data`` and ``figures``; everything else is optional.
    """
    tensors = {
        key: value.half() if key.startswith("decoder.") else value for key, value in network.state_dict().items()
    }
    write_tensors(path, "model", tensors, content)


def read_model(path: Path | str) -> tuple[GroupCapsNet, dict[str, Any]]:
    """Read a trained network, in eval mode, and the description that its file holds.

    The description is compared with the weights before anything of the size that it states is allocated.

    Raises:
        DamagedFileError: if the weights are not finite, or not those of the network that is described.
        FileError: if this equicaps cannot build that network.
    """
    tensors, content = read_tensors(Path(path), "model")
    try:
        architecture = Architecture(**content["config"]["model"])
        if architecture.image_size > LARGEST_SIDE:
            raise ValueError(
                f"its images have a side of {architecture.image_size}, but at most {LARGEST_SIDE} is allowed."
            )
        with torch.device("meta"):
            planned = architecture.build(seed=0).state_dict()
        _check_weights(Path(path), planned, tensors)
        network = architecture.build(seed=0)
        network.load_state_dict(tensors)
        count = len(content["classes"])
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, MemoryError, OverflowError) as error:
        raise FileError(f"{path} holds a network that this equicaps cannot build: {_brief(error)}") from error
    if count != network.body.config.num_classes:
        raise FileError(f"{path} names {count} classes, but its network has {network.body.config.num_classes}.")
    return network.eval(), content


def _brief(said: object) -> str:
    """The first line of an error or a name, which a stranger may have written into a file."""
    first = (str(said).splitlines() or [type(said).__name__])[0]
    return first if len(first) <= 300 else f"{first[:300]} ..."


def _check_weights(path: Path, planned: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
    """Raise unless the tensors are finite and have the names, shapes and kinds of those that are planned."""
    if missing := sorted(planned.keys() - tensors.keys()):
        raise DamagedFileError(f"{path} has no weights {missing[0]!r}, which the network that it describes needs.")
    if needless := sorted(tensors.keys() - planned.keys()):
        raise DamagedFileError(
            f"{path} has weights {_brief(needless[0])!r}, which the network that it describes does not have."
        )
    for name, tensor in tensors.items():
        wanted = planned[name]
        if tensor.shape != wanted.shape or tensor.is_floating_point() != wanted.is_floating_point():
            raise DamagedFileError(
                f"{path} has weights {name!r} of shape {tuple(tensor.shape)} and type {tensor.dtype}, but the network "
                f"that it describes has {tuple(wanted.shape)} and {wanted.dtype}."
            )
        if not tensor.to(wanted.dtype).isfinite().all():  # float64 may hold what float32 cannot
            raise DamagedFileError(f"{path} has weights {name!r} that are not finite numbers: train the network again.")


def _find(name: str | Path) -> Path:
    if name in SHIPPED:
        return Path(str(files("equicaps.inference") / "weights" / f"{name}.safetensors"))
    path = Path(name)
    if not path.exists():
        raise NotFoundError(
            f"there is no model {str(name)!r}: give one of {', '.join(SHIPPED)}, or the file or folder of a training."
        )
    if path.is_dir() and not (path / MODEL).exists():
        raise NotFoundError(
            f"{path} holds no {MODEL}, so it is not the folder of a finished training; continue an interrupted one "
            "with `equicaps train DATA --resume --out FOLDER`."
        )
    return path / MODEL if path.is_dir() else path
