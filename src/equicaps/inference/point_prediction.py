"""The answers of a model for shapes: for a batch of clouds, and for a single one."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import roma
import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.inference.prediction import SHOWN
from equicaps.models import CapsOutput

Vector = tuple[float, ...]


@dataclass(frozen=True)
class PointAnswer:
    """The class and the rotation of one shape, according to both outputs of the network.

    Attributes:
        label: the class with the highest score.
        confidence: its probability.
        rotation: the matrix that takes the upright shape of that class to this one, row by row; None without a pose.
        rotation_vector_degrees: the same as an axis times the angle in degrees.
        angle: the length of that vector, in [0, 180].
        angle_error: the rotation is no further than this many degrees from the truth in nine of ten such cases; None
            without a pose, or if that was not measured.
        agreed_label: the class whose votes agree most.
        agreement: the agreement of those votes, in [0, 1].
        scores: the score of every class, before the softmax.
        agreements: the agreement of every class.
    """

    label: str
    confidence: float
    rotation: tuple[Vector, ...] | None
    rotation_vector_degrees: Vector | None
    angle: float | None
    angle_error: float | None
    agreed_label: str
    agreement: float
    scores: dict[str, float]
    agreements: dict[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class PointPrediction:
    """The classes and rotations of a batch of clouds; iterating gives a :class:`PointAnswer` for each.

    Attributes:
        labels: the index of the most probable class in ``classes``.
        confidence: its probability.
        rotations: the matrix that takes the upright shape of that class to this one; NaN without a pose.
        output: the scores, agreements and poses of all classes.
        classes: the names of the classes.
        angle_error: for each cloud, the degrees by which its rotation is off at most in nine of ten such cases; NaN
            without a pose, None if that was not measured.
    """

    labels: Int[Tensor, " n"]
    confidence: Float[Tensor, " n"]
    rotations: Float[Tensor, "n 3 3"]
    output: CapsOutput
    classes: tuple[str, ...]
    angle_error: Float[Tensor, " n"] | None = None

    @property
    def names(self) -> list[str]:
        """The name of each cloud's class."""
        return [self.classes[label] for label in self.labels.tolist()]

    @property
    def quaternions(self) -> Float[Tensor, "n 4"]:
        """The rotations as unit quaternions (x, y, z, w), as in roma and scipy; NaN without a pose."""
        return self._where_defined(roma.rotmat_to_unitquat, 4)

    @property
    def rotation_vectors(self) -> Float[Tensor, "n 3"]:
        """The rotations as axes times angles in radians, at most π; NaN without a pose."""
        return self._where_defined(roma.rotmat_to_rotvec, 3)

    def _where_defined(self, convert: Callable[[Tensor], Tensor], size: int) -> Tensor:
        defined = ~self.rotations.isnan().any(-1).any(-1)
        found = self.rotations.new_full((len(self), size), torch.nan)
        if defined.any():
            found[defined] = convert(self.rotations[defined])
        return found

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[PointAnswer]:
        errors = [math.nan] * len(self) if self.angle_error is None else self.angle_error.tolist()
        rows = zip(
            self.names, self.confidence.tolist(), self.rotations.tolist(), self.rotation_vectors.rad2deg().tolist(),
            errors, self.output.scores.tolist(), self.output.activations.tolist(),
            strict=True,
        )  # fmt: skip
        for name, confidence, rotation, vector, error, scores, agreements in rows:
            defined = not math.isnan(vector[0])
            agreed = max(range(len(self.classes)), key=agreements.__getitem__)
            yield PointAnswer(
                label=name,
                confidence=confidence,
                rotation=tuple(map(tuple, rotation)) if defined else None,
                rotation_vector_degrees=tuple(vector) if defined else None,
                angle=min(math.hypot(*vector), 180.0) if defined else None,
                angle_error=None if math.isnan(error) else error,
                agreed_label=self.classes[agreed],
                agreement=agreements[agreed],
                scores=dict(zip(self.classes, scores, strict=True)),
                agreements=dict(zip(self.classes, agreements, strict=True)),
            )

    def to_dict(self) -> dict[str, Any]:
        """The class names and the answer for each cloud as plain values, for JSON; a missing rotation is None."""
        return {"classes": list(self.classes), "answers": [asdict(answer) for answer in self]}

    def __repr__(self) -> str:
        shown = [
            f"{answer.label} ({answer.confidence:.1%}, {format_rotation(answer)})"
            for _, answer in zip(range(SHOWN), self, strict=False)
        ]
        more = [f"... {len(self) - SHOWN} more"] if len(self) > SHOWN else []
        return f"PointPrediction({', '.join(shown + more)})"


def format_rotation(answer: PointAnswer) -> str:
    """The angle with its error, and the axis, or a dash without a pose."""
    if answer.angle is None or answer.rotation_vector_degrees is None:
        return "–"
    error = "" if answer.angle_error is None else f" ±{answer.angle_error:.0f}°"
    if round(answer.angle, 1) == 0:
        return f"{answer.angle:.1f}°{error}"
    axis = ", ".join(f"{x / answer.angle:+.2f}" for x in answer.rotation_vector_degrees)
    return f"{answer.angle:.1f}°{error} about ({axis})"
