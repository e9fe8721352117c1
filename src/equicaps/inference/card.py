"""What a user should know about a trained model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equicaps._checks import is_printable
from equicaps.images.background import BACKGROUNDS, Background

CONVENTION = (
    "Angles are degrees, counter-clockwise as a person sees the image; an upright image of a class reads about 0. "
    "Exact under turns by 90 degrees, approximate in between."
)


@dataclass(frozen=True)
class Card:
    """The model card, stored with the weights.

    Attributes:
        name: of the model.
        task: one sentence.
        data: what it was trained on.
        classes: names, in the order of the scores.
        zeros: for each class the angle in degrees that the network itself gives to upright images.
        figures: name -> measured value, see ``command``.
        command: what prints the figures.
        licence: of weights and data.
        frame: side to which images are brought before they are padded to the network's size.
        background: of the training images, see :data:`~equicaps.images.background.BACKGROUNDS`; None if unknown.
        training: the training's settings, for the record.
        convention: what angles mean and what is exact.
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
    training: dict[str, Any] = field(default_factory=dict)
    convention: str = CONVENTION

    @classmethod
    def of(cls, name: str, content: Mapping[str, Any]) -> "Card":
        """From what a model file says."""
        classes = tuple(map(str, content["classes"]))
        names = ("name", "task", "command", "licence", "frame", "background", "convention")
        texts = {key: content[key] for key in names if key in content}
        if "ground" in content:  # its name in files of version 0.1
            texts.setdefault("background", content["ground"])
        return cls(
            **{"name": name, "task": f"classifies {len(classes)} classes and says how they are rotated", **texts},
            data=str(content["data"]),
            classes=classes,
            zeros=tuple(content.get("zeros", (0.0,) * len(classes))),
            figures=dict(content["figures"]),
            training=dict(content["config"]),
        )

    def __post_init__(self) -> None:
        if len(self.zeros) != len(self.classes):
            raise ValueError(f"Card: {len(self.classes)} classes, but {len(self.zeros)} zero angles.")
        if not all(isinstance(zero, int | float) and math.isfinite(zero) for zero in self.zeros):
            raise ValueError("Card: zeros must be angles in degrees.")
        if type(self.frame) is not int or self.frame < 1:
            raise ValueError(f"Card: frame must be a number of pixels, but is {self.frame!r}.")
        if self.background not in (None, *BACKGROUNDS):
            raise ValueError(
                f"Card: background must be one of {', '.join(BACKGROUNDS)} or None, but is {self.background!r}."
            )
        for name in ("name", "task", "data", "command", "licence", "convention"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"Card: {name} must be a text, but is {getattr(self, name)!r}.")
            _check_printable(name, getattr(self, name))
        for name in self.classes:
            _check_printable("the name of a class", name)
        for name in self.figures:
            _check_printable("the name of a figure", name)
        if not self.name or self.name in (".", "..") or any(sign in self.name for sign in "/\\"):
            raise ValueError(
                f"Card: name must be one that a file can have, without folders, but is {self.name!r}. equicaps writes "
                "no such names: do not trust this file."
            )
        if not all(isinstance(value, int | float) for value in self.figures.values()):
            raise ValueError("Card: figures must be numbers.")


def _check_printable(what: str, text: str) -> None:
    """Control characters could command a terminal, or cut off a file's name."""
    if not is_printable(text):
        raise ValueError(
            f"Card: {what} holds control characters, {text!r}. equicaps writes no such texts: do not trust this file."
        )
