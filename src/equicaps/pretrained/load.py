"""Shipped and own models by name or path."""

from importlib.resources import files
from pathlib import Path

from equicaps.pretrained.card import Card
from equicaps.pretrained.model import TurningModel
from equicaps.training.checkpoint import load_model
from equicaps.training.errors import CheckpointError

SHIPPED = ("digits", "digits-upright", "digits-plain")
"""Models inside the package."""


def load(name: str | Path) -> TurningModel:
    """A trained model: one of :data:`SHIPPED`, or the ``model.safetensors`` of a training (or its folder).

    ``model.predict(images)`` gives ``labels``, ``confidence`` and ``angles``; ``model.network`` is the
    :class:`GroupCapsNet`, ``model.card`` what is known about it.
    """
    path = (
        Path(str(files("equicaps.pretrained") / "weights" / f"{name}.safetensors")) if name in SHIPPED else Path(name)
    )
    if path.is_dir():
        path = path / "model.safetensors"
    if not path.exists():
        raise CheckpointError(
            f"no model {str(name)!r}: it is neither shipped ({', '.join(SHIPPED)}) nor a file or folder of a training."
        )
    trained = load_model(path)
    stem = path.resolve().parent.name if path.name == "model.safetensors" else path.stem  # every training writes that
    try:
        return TurningModel(trained.network, Card.of(stem, trained))
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path} has a card that this equicaps cannot read: {error}") from error
