"""What a model answers: for a batch of images, and for a single one."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from equicaps.models import CapsOutput


@dataclass(frozen=True)
class Answer:
    """The class and angle of one image, by both outputs of the network.

    Attributes:
        label: the class with the highest score.
        confidence: its probability.
        angle: degrees counter-clockwise from the upright position of that class, in (-180, 180]; None without a pose.
        agreed_label: the class whose votes agree most; None for a network without poses.
        agreement: of those votes, in [0, 1]; None likewise.
        scores: of every class, before the softmax.
        agreements: of every class; None likewise.
        opposite_background: whether the background is bright where that of the training images was dark, or the other
            way round; None if the model does not know.
    """

    label: str
    confidence: float
    angle: float | None
    agreed_label: str | None
    agreement: float | None
    scores: dict[str, float]
    agreements: dict[str, float] | None
    opposite_background: bool | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Prediction:
    """The classes and angles of a batch of images; iterating gives an :class:`Answer` for each.

    Attributes:
        labels: position of the most probable class in ``classes``.
        confidence: its probability.
        angles: degrees counter-clockwise from the upright position of that class, in (-180, 180]; NaN without a pose.
        output: all scores, agreements and poses of the network.
        classes: their names.
        has_poses: whether the network has poses; without them there are no angles and no agreements.
    """

    labels: Int[Tensor, " n"]
    confidence: Float[Tensor, " n"]
    angles: Float[Tensor, " n"]
    output: CapsOutput
    classes: tuple[str, ...]
    has_poses: bool = True

    @property
    def names(self) -> list[str]:
        """The class of each image by name."""
        return [self.classes[label] for label in self.labels.tolist()]

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[Answer]:
        rows = zip(
            self.names, self.confidence.tolist(), self.angles.tolist(), self.output.scores.tolist(),
            self.output.activations.tolist(), strict=True,
        )  # fmt: skip
        for name, confidence, angle, scores, agreements in rows:
            agreed = max(range(len(self.classes)), key=agreements.__getitem__)
            yield Answer(
                label=name,
                confidence=confidence,
                angle=None if math.isnan(angle) else angle,
                agreed_label=self.classes[agreed] if self.has_poses else None,
                agreement=agreements[agreed] if self.has_poses else None,
                scores=dict(zip(self.classes, scores, strict=True)),
                agreements=dict(zip(self.classes, agreements, strict=True)) if self.has_poses else None,
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and texts, one entry for each image."""
        return {"classes": list(self.classes), "answers": [asdict(answer) for answer in self]}

    def __repr__(self) -> str:
        shown = [
            f"{answer.label} ({answer.confidence:.1%}, {format_angle(answer.angle)})"
            for _, answer in zip(range(SHOWN), self, strict=False)
        ]
        more = [f"... {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return f"Prediction({', '.join(shown + more)})"


SHOWN = 6
"""Answers in the ``repr`` of a prediction."""


def format_angle(angle: float | None) -> str:
    """Signed degrees; a dash without a pose."""
    return "–" if angle is None else f"{angle:+.1f}°"
