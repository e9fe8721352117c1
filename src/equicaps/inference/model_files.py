"""Files of trained models: those shipped with the package and those that a training writes."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar, overload

import torch
from torch import Tensor

from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError, NotFoundError, UsageError
from equicaps.inference.card import Card
from equicaps.inference.model import PoseModel
from equicaps.inference.point_card import PointCard
from equicaps.inference.point_model import PointModel
from equicaps.models import POINT_PRESETS, Architecture, GroupCapsNet, PointArchitecture, PointCapsNet

SHIPPED = ("digits", "digits-paper", "digits-upright", "digits-plain", "modelnet10")
"""The models that come with the package."""
MODEL = "model.safetensors"
"""The file that a training writes into its folder."""


LARGEST_SIDE = 1024
"""Networks for larger images are refused, because the memory that they take does not depend on the size of the file."""


Network = GroupCapsNet | PointCapsNet
N = TypeVar("N", GroupCapsNet, PointCapsNet)


@overload
def load(name: Literal["digits", "digits-paper", "digits-upright", "digits-plain"]) -> PoseModel: ...
@overload
def load(name: Literal["modelnet10"]) -> PointModel: ...
@overload
def load(name: str | Path) -> PoseModel | PointModel: ...
def load(name: str | Path) -> PoseModel | PointModel:
    """Load a trained model: one of :data:`SHIPPED`, the ``model.safetensors`` of a training, or its folder.

    A training on images gives a :class:`PoseModel`: ``model.predict(images)`` has ``labels``, ``confidence`` and
    ``angles``. A training on shapes gives a :class:`PointModel`: ``model.predict(points)`` has ``rotations`` instead of
    angles. ``model.network`` is the network, and ``model.card`` says what is known about it.
    """
    path = _find(name)
    network, content = _read(path)
    stem = path.resolve().parent.name if path.name == MODEL else path.stem  # every training writes that name
    try:
        if isinstance(network, PointCapsNet):
            return PointModel(network, PointCard.of(stem, content))
        card = Card.of(stem, content)
        if card.frame > LARGEST_SIDE:
            raise ValueError(f"frame must be at most {LARGEST_SIDE} pixels, but is {card.frame}.")
        return PoseModel(network, card)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FileError(f"{path} has a card that this equicaps cannot read: {_brief(error)}") from error


def load_image_model(name: str | Path) -> PoseModel:
    """Like :func:`load`, where only a model that takes images will do."""
    model = load(name)
    if isinstance(model, PointModel):
        raise UsageError(f"{name} is a model of shapes, but one that takes images is needed here.")
    return model


def save_model(path: Path, network: Network, content: Mapping[str, Any]) -> None:
    """Write a network's weights with its description, from which :meth:`Card.of` or :meth:`PointCard.of` builds a card.

    Decoders are stored in half precision, because no prediction depends on them.

    Args:
        path: the file to write.
        network: the trained network.
        content: the description: ``config`` (with the arguments of the architecture under ``model``), ``classes``,
            ``data`` and ``figures``; of a network for shapes also ``points`` and ``uprights``. Everything else is
            optional.
    """
    tensors = {
        key: value.half() if key.startswith("decoder.") else value for key, value in network.state_dict().items()
    }
    write_tensors(path, "model", tensors, content)


def read_model(path: Path | str) -> tuple[GroupCapsNet, dict[str, Any]]:
    """Read a trained network for images, in eval mode, and the description that its file holds.

    The description is compared with the weights before anything of the size that it states is allocated.

    Raises:
        DamagedFileError: if the weights are not finite, or not those of the network that is described.
        FileError: if this equicaps cannot build that network, or if it takes shapes.
    """
    network, content = _read(Path(path))
    return _of_kind(GroupCapsNet, Path(path), network), content


def read_point_model(path: Path | str) -> tuple[PointCapsNet, dict[str, Any]]:
    """The same for a network that takes shapes."""
    network, content = _read(Path(path))
    return _of_kind(PointCapsNet, Path(path), network), content


def _of_kind(kind: type[N], path: Path, network: Network) -> N:
    if not isinstance(network, kind):
        takes, wanted = ("shapes", "images") if kind is GroupCapsNet else ("images", "shapes")
        raise FileError(f"{path} holds a network that takes {takes}; expected one that takes {wanted}.")
    return network


def _read(path: Path) -> tuple[Network, dict[str, Any]]:
    tensors, content = read_tensors(path, "model")
    try:
        architecture = _architecture(content["config"]["model"])
        with torch.device("meta"):
            planned = architecture.build(seed=0).state_dict()
        _check_weights(path, planned, tensors)
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


def _architecture(model: Mapping[str, Any]) -> Architecture | PointArchitecture:
    """What a description says: images have a size, and all that is not stated has a default."""
    if "image_size" not in model and model.get("preset") in POINT_PRESETS:
        return PointArchitecture(**model)
    architecture = Architecture(**model)
    if architecture.image_size > LARGEST_SIDE:
        raise ValueError(f"its images have a side of {architecture.image_size}, but at most {LARGEST_SIDE} is allowed.")
    return architecture


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
