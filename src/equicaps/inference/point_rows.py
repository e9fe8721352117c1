"""Answers about shapes as the rows of a table."""

from collections.abc import Sequence

from equicaps.inference.point_prediction import PointAnswer
from equicaps.inference.prediction import Failure
from equicaps.inference.rows import Row, encodable, finite

OF_ANSWERS: dict[str, type] = {
    "label": str, "confidence": float, "angle": float, "angle_error": float, "agreed_label": str, "agreement": float,
}  # fmt: skip
"""The columns that have the name and the value of an attribute of :class:`PointAnswer`."""
OF_ROTATIONS = ("rotation_x", "rotation_y", "rotation_z")
"""The rotation vector in degrees."""


def point_columns(classes: Sequence[str]) -> dict[str, type]:
    """The columns of a table, which depend on the classes: each has a column with its score."""
    scores = (f"score_{name}" for name in classes)
    return {
        "file": str,
        **OF_ANSWERS,
        **dict.fromkeys(OF_ROTATIONS, float),
        "error": str,
        **dict.fromkeys(scores, float),
    }


def as_point_row(file: str, answer: PointAnswer | Failure, classes: Sequence[str]) -> Row:
    """What a model says about a shape, or why there is no answer; everything else is None."""
    row: Row = dict.fromkeys(point_columns(classes))
    row["file"] = encodable(file)
    if isinstance(answer, Failure):
        row["error"] = encodable(str(answer))
        return row
    row |= {name: finite(getattr(answer, name)) for name in OF_ANSWERS}
    if answer.rotation_vector_degrees is not None:
        row |= dict(zip(OF_ROTATIONS, answer.rotation_vector_degrees, strict=True))
    return row | {f"score_{name}": finite(score) for name, score in answer.scores.items()}
