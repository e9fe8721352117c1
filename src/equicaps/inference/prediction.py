"""The answers of a model: for a batch of images, and for a single image."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps.errors import UnansweredError
from equicaps.models import CapsOutput

Failure = OSError | UnansweredError
"""Why there is no answer: a file cannot be read, or what the network computes is not finite."""


@dataclass(frozen=True)
class Answer:
    """The class and the angle of one image, according to both outputs of the network.

    Attributes:
        label: the class with the highest score.
        confidence: its probability.
        angle: the angle in degrees, counter-clockwise from the upright position of that class, in (-180, 180]; None
            without a pose. Of a class that looks the same after a part of a turn it is known modulo ``period``.
        period: the degrees after which that class looks the same: 360, 180 for a bar, 60 for a hexagon, ..., or 0 for
            something round, which has no angle.
        angle_error: in nine of ten such cases, the angle is off by at most this many degrees. If errors of the class
            were measured from known angles, that is the distance from the true angle; otherwise it says how closely
            the angle follows when the image is rotated. :attr:`Card.angle_errors` says which it is. None without a
            pose, or if that was not measured when the model was trained.
        agreed_label: the class whose votes agree most; None for a network without poses.
        agreement: the agreement of those votes, in [0, 1]; None for a network without poses.
        scores: the score of every class, before the softmax.
        agreements: the agreement of every class; None for a network without poses.
        inverted: whether the image was inverted, because its background is bright and that of all training images dark,
            or the reverse.
    """

    label: str
    confidence: float
    angle: float | None
    agreed_label: str | None
    agreement: float | None
    scores: dict[str, float]
    agreements: dict[str, float] | None
    inverted: bool = False
    angle_error: float | None = None
    period: float = 360.0


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The classes and angles of a batch of images; iterating gives an :class:`Answer` for each.

    Attributes:
        labels: the index of the most probable class in ``classes``.
        confidence: its probability.
        angles: the angle in degrees, counter-clockwise from the upright position of that class, in (-180, 180]; NaN
            without a pose.
        output: the scores, agreements and poses of all classes.
        classes: the names of the classes.
        has_poses: whether the network has poses; without them there are no angles and no agreements.
        inverted: whether each image was inverted, because the model knows only the opposite background.
        angle_error: for each image, the degrees by which its angle is off at most in nine of ten such cases; NaN
            without a pose, None if that was not measured when the model was trained.
        period: the degrees after which the class of each image looks the same, modulo which its angle is known; 0 for
            something round. None stands for 360 everywhere.
    """

    labels: Int[Tensor, " n"]
    confidence: Float[Tensor, " n"]
    angles: Float[Tensor, " n"]
    output: CapsOutput
    classes: tuple[str, ...]
    has_poses: bool = True
    inverted: Bool[Tensor, " n"] | None = None
    angle_error: Float[Tensor, " n"] | None = None
    period: Float[Tensor, " n"] | None = None

    @staticmethod
    def cat(parts: "Sequence[Prediction]") -> "Prediction":
        """Join the predictions of several batches of one model."""
        first = parts[0]

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if values[0] is None else torch.cat(values)

        tensors = ("labels", "confidence", "angles", "inverted", "angle_error", "period")
        output = CapsOutput.cat([part.output for part in parts])
        return replace(first, output=output, **{name: joined(name) for name in tensors})

    @property
    def names(self) -> list[str]:
        """The name of each image's class."""
        return [self.classes[label] for label in self.labels.tolist()]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Answer]:
        rows = zip(
            self.names, self.confidence.tolist(), self.angles.tolist(), self.output.scores.tolist(),
            self.output.activations.tolist(), self._inverted(), self._errors(), self._periods(),
            strict=True,
        )  # fmt: skip
        for name, confidence, angle, scores, agreements, inverted, error, period in rows:
            agreed = max(range(len(self.classes)), key=agreements.__getitem__)
            yield Answer(
                label=name,
                confidence=confidence,
                angle=None if math.isnan(angle) else angle,
                agreed_label=self.classes[agreed] if self.has_poses else None,
                agreement=agreements[agreed] if self.has_poses else None,
                scores=dict(zip(self.classes, scores, strict=True)),
                agreements=dict(zip(self.classes, agreements, strict=True)) if self.has_poses else None,
                inverted=inverted,
                angle_error=None if math.isnan(error) else error,
                period=period,
            )

    def _inverted(self) -> list[bool]:
        return [False] * len(self) if self.inverted is None else self.inverted.tolist()

    def _errors(self) -> list[float]:
        return [math.nan] * len(self) if self.angle_error is None else self.angle_error.tolist()

    def _periods(self) -> list[float]:
        return [360.0] * len(self) if self.period is None else self.period.tolist()

    def to_dict(self) -> dict[str, Any]:
        """The class names and the answer for each image as plain values, for JSON; a missing angle is None."""
        return {"classes": list(self.classes), "answers": [asdict(answer) for answer in self]}

    def __repr__(self) -> str:
        shown = [
            f"{answer.label} ({answer.confidence:.1%}, {format_angle(answer)})"
            for _, answer in zip(range(SHOWN), self, strict=False)
        ]
        more = [f"... {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return f"Prediction({', '.join(shown + more)})"


SHOWN = 6
"""The number of answers that the ``repr`` of a prediction shows."""


def format_angle(answer: Answer) -> str:
    """The angle in signed degrees with its error and the period of a symmetric class, or a dash without a pose."""
    if answer.angle is None:
        return "–"
    error = "" if answer.angle_error is None else f" ±{answer.angle_error:.0f}°"
    return f"{answer.angle:+.1f}°{error}" + ("" if answer.period == 360 else f" mod {answer.period:g}°")
