"""The card of a model that takes shapes: what a user should know about it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.shapes import POINTS
from equicaps.groups import SO3
from equicaps.inference.card import check_common, common_fields

POINT_CONVENTION = (
    "Rotations are matrices that take the upright shape of a class to the shape as it was given, in the axes of its "
    "coordinates; upright is the mean orientation of the training shapes of that class. Exact for every rotation of "
    "space, up to rounding: class and confidence stay, and the rotation follows. A mirror image is another shape."
)
MOST_POINTS = 16_384
"""The largest number of points that are drawn from a surface, or kept of a cloud that has more."""


@dataclass(frozen=True)
class PointCard:
    """The card of a :class:`PointModel`, stored with the weights.

    Attributes:
        name: the name of the model.
        task: what the model does, in one sentence.
        data: what the model was trained on.
        classes: the names of the classes, in the order of the scores.
        uprights: for each class, the pose that the network gives to its upright shapes, a matrix row by row; zero if
            they have none in common.
        points: how many points are drawn from a surface, as in its training.
        figures: measured values by name; see ``command``.
        command: the command that prints the figures.
        licence: the licence of the weights and the data.
        angle_errors: for each class, the angle in degrees by which rotations of nine of ten shapes are off at most;
            None if it was not measured.
        training: the settings of the training, for the record.
        convention: what rotations mean, and what is exact.
    """

    name: str
    task: str
    data: str
    classes: tuple[str, ...]
    uprights: tuple[tuple[float, ...], ...]
    points: int = POINTS
    figures: dict[str, int | float] = field(default_factory=dict)
    command: str = ""
    licence: str = ""
    angle_errors: tuple[float, ...] | None = None
    training: dict[str, Any] = field(default_factory=dict)
    convention: str = POINT_CONVENTION

    @classmethod
    def of(cls, name: str, content: Mapping[str, Any]) -> "PointCard":
        """Build the card from the content of a model file; ``name`` is used if the file states none."""
        errors = content.get("angle_errors")
        return cls(
            **common_fields(name, content),
            uprights=tuple(tuple(map(float, pose)) for pose in content["uprights"]),
            points=content["points"],
            angle_errors=None if errors is None else tuple(map(float, errors)),
        )

    def __post_init__(self) -> None:
        check_common(self)
        if len(self.uprights) != len(self.classes) or any(len(pose) != 9 for pose in self.uprights):
            raise ValueError(f"Card: uprights must have nine numbers for each of {len(self.classes)} classes.")
        poses = self.upright_poses()
        if not _are_poses(poses):
            raise ValueError("Card: uprights must be rotations of space, or zero for a class without an upright.")
        if type(self.points) is not int or not 1 <= self.points <= MOST_POINTS:
            raise ValueError(
                f"Card: points must be a whole number from 1 to {MOST_POINTS:,}, but is {str(self.points)[:50]!r}."
            )
        errors = self.angle_errors
        if errors is not None and not (
            len(errors) == len(self.classes) and all(math.isfinite(error) and error >= 0 for error in errors)
        ):
            raise ValueError(
                f"Card: angle_errors must be finite and not negative, one for each of {len(self.classes)} classes, but "
                f"are {errors}."
            )

    def upright_poses(self) -> Float[Tensor, "classes 9"]:
        """The upright pose of each class."""
        return torch.tensor(self.uprights, dtype=torch.float64).reshape(-1, 9)


def _are_poses(poses: Float[Tensor, "n 9"]) -> bool:
    """Whether all are finite and, where they are defined, rotations times a factor that is at most 1."""
    if not poses.isfinite().all() or bool((poses.abs() > 1 + ROUNDED).any()):
        return False
    defined = poses[SO3().presence(poses) > 0.5].unflatten(-1, (3, 3))
    square = defined.square().sum((-2, -1))[:, None, None] / 3
    apart = defined @ defined.mT / square - torch.eye(3, dtype=poses.dtype)
    return bool((apart.abs() < ROUNDED).all() and (torch.linalg.det(defined) > 0).all())


ROUNDED = 1e-2
"""How far an upright pose may be from a rotation; that of float32 is much nearer."""
