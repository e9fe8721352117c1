"""The model card: what a user should know about a trained model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from equicaps._checks import is_printable
from equicaps.images.background import BACKGROUNDS, Background
from equicaps.inference.angle_error import AngleErrors
from equicaps.inference.symmetry import Symmetries

CONVENTION = (
    "Angles are in degrees, counter-clockwise as a person sees the image; an upright image of a class reads about 0. "
    "Exact under rotations by multiples of 90 degrees, approximate in between."
)


@dataclass(frozen=True)
class Card:
    """The model card, stored with the weights.

    Attributes:
        name: the name of the model.
        task: what the model does, in one sentence.
        data: what the model was trained on.
        classes: the names of the classes, in the order of the scores.
        zeros: for each class, the angle in degrees that the network itself gives to upright images.
        figures: measured values by name; see ``command``.
        command: the command that prints the figures.
        licence: the licence of the weights and the data.
        frame: the side to which images are resized before they are padded to the network's size.
        background: the background of all training images, one of :data:`~equicaps.images.background.BACKGROUNDS`;
            images with the opposite one are inverted. None if they differ.
        angle_errors: how far angles may be off, measured on images that were not trained on; None if it was not. It
            says for which classes that was done with known angles, and for which by rotating images.
        symmetries: the classes that look the same after a part of a turn; None if there are none.
        training: the settings of the training, for the record.
        convention: what angles mean, and what is exact.
    """

    name: str
    task: str
    data: str
    classes: tuple[str, ...]
    zeros: tuple[float, ...]
    figures: dict[str, int | float] = field(default_factory=dict)
    command: str = ""
    licence: str = ""
    frame: int = 32
    background: Background | None = None
    angle_errors: AngleErrors | None = None
    symmetries: Symmetries | None = None
    training: dict[str, Any] = field(default_factory=dict)
    convention: str = CONVENTION

    @classmethod
    def of(cls, name: str, content: Mapping[str, Any]) -> "Card":
        """Build the card from the content of a model file; ``name`` is used if the file states none."""
        errors, symmetries = content.get("angle_errors"), content.get("symmetries")
        return cls(
            **common_fields(name, content),
            **{key: content[key] for key in ("frame", "background") if key in content},
            zeros=tuple(map(float, content.get("zeros", (0.0,) * len(content["classes"])))),
            angle_errors=None if errors is None else AngleErrors.of(errors),
            symmetries=None if symmetries is None else Symmetries.of(symmetries),
        )

    def __post_init__(self) -> None:
        if len(self.zeros) != len(self.classes):
            raise ValueError(
                f"Card: zeros must have one angle for each of {len(self.classes)} classes, but has {len(self.zeros)}."
            )
        if not all(isinstance(zero, int | float) and math.isfinite(zero) for zero in self.zeros):
            raise ValueError(f"Card: zeros must be finite angles in degrees, but are {self.zeros!r}.")
        if self.angle_errors is not None and len(self.angle_errors.by_class) != len(self.classes):
            raise ValueError(
                f"Card: angle_errors must have one error for each of {len(self.classes)} classes, but has "
                f"{len(self.angle_errors.by_class)}."
            )
        if self.symmetries is not None and len(self.symmetries.classes) != len(self.classes):
            raise ValueError(
                f"Card: symmetries must have one entry for each of {len(self.classes)} classes, but have "
                f"{len(self.symmetries.classes)}."
            )
        if type(self.frame) is not int or self.frame < 1:
            raise ValueError(f"Card: frame must be a number of pixels, but is {self.frame!r}.")
        if self.background not in (None, *BACKGROUNDS):
            raise ValueError(
                f"Card: background must be one of {', '.join(BACKGROUNDS)} or None, but is {self.background!r}."
            )
        check_common(self)


@runtime_checkable
class CommonCard(Protocol):
    """What the cards of all models have."""

    @property
    def name(self) -> str:
        """The name of the model."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes."""

    @property
    def figures(self) -> dict[str, int | float]:
        """Measured values."""


def common_fields(name: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that all cards have, from the content of a model file."""
    classes = tuple(map(str, content["classes"]))
    texts = {key: content[key] for key in ("name", "task", "command", "licence", "convention") if key in content}
    return {
        "name": name,
        "task": f"classifies {len(classes)} classes and says how they are rotated",
        **texts,
        "data": str(content["data"]),
        "classes": classes,
        "figures": dict(content["figures"]),
        "training": dict(content["config"]),
    }


def check_common(card: CommonCard) -> None:
    """Raise unless texts are texts that a terminal can show, the name is one of a file, and figures are numbers."""
    for name in ("name", "task", "data", "command", "licence", "convention"):
        if not isinstance(getattr(card, name), str):
            raise ValueError(f"Card: {name} must be a string, but is {getattr(card, name)!r}.")
        _check_printable(name, getattr(card, name))
    for name in card.classes:
        _check_printable("the name of a class", name)
    for name in card.figures:
        _check_printable("the name of a figure", name)
    if not card.name or card.name in (".", "..") or any(sign in card.name for sign in "/\\"):
        raise ValueError(
            f"Card: name must be a valid file name without folders, but is {card.name!r}. equicaps never writes "
            "such names: do not trust this file."
        )
    if not all(isinstance(value, int | float) for value in card.figures.values()):
        raise ValueError("Card: figures must be numbers.")


def _check_printable(what: str, text: str) -> None:
    """Raise if a text has control characters, which could control a terminal or cut off a file name."""
    if not is_printable(text):
        raise ValueError(
            f"Card: {what} contains control characters: {text!r}. equicaps never writes them: do not trust this file."
        )
