"""How far a rotation of space may be off, as measured on shapes that the network was not trained on."""

from typing import TYPE_CHECKING

import roma
import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.shapes import Shapes
from equicaps.inference.angle_error import FEWEST, conformal_quantile
from equicaps.inference.point_prediction import PointPrediction

if TYPE_CHECKING:
    from equicaps.inference.point_model import PointModel


def measure_rotation_errors(model: "PointModel", shapes: Shapes, *, upright: bool) -> tuple[float, ...] | None:
    """For each class, the degrees by which the rotations of nine of ten shapes are off at most.

    No shape needs to be rotated for this: predicted rotations follow exactly. Of a class with few shapes the error of
    all shapes is stated, and None if there are fewer than :data:`FEWEST` shapes with a pose.

    Args:
        model: whose card has no errors yet.
        shapes: should not have been trained on.
        upright: whether they all stand upright, which is then the truth; otherwise two samples of one shape are
            compared, where both get the same class, and clouds that have no other points are left out.
    """
    points = model.card.points
    shapes = shapes if upright else shapes.take(~shapes.surfaces.whole(points))
    if not len(shapes):
        return None
    found = model.predict(shapes.surfaces.draw(points, torch.Generator().manual_seed(1)))
    if upright:
        truth = torch.eye(3).expand_as(found.rotations)
    else:
        other = model.predict(shapes.surfaces.draw(points, torch.Generator().manual_seed(2)))
        same = other.labels == found.labels  # rotations are measured from the upright of the class
        truth = torch.where(same[:, None, None], other.rotations, torch.nan)
    off = _degrees_between(found, truth)
    labels, off = found.labels[~off.isnan()], off[~off.isnan()]
    if len(off) < FEWEST:
        return None
    overall = conformal_quantile(off)
    of_classes = (off[labels == label] for label in range(len(model.classes)))
    return tuple(conformal_quantile(own) if 2 * len(own) >= FEWEST else overall for own in of_classes)


def _degrees_between(found: PointPrediction, truth: Float[Tensor, "n 3 3"]) -> Float[Tensor, " n"]:
    """The angle between predicted and true rotations; NaN where either is undefined."""
    defined = ~(found.rotations.isnan() | truth.isnan()).any(-1).any(-1)
    off = found.confidence.new_full((len(found),), torch.nan)
    off[defined] = roma.rotmat_geodesic_distance(found.rotations[defined], truth[defined]).rad2deg().to(off)
    return off
