"""The poses of radio galaxies beside angles from image moments, which need neither labels nor a network."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps.data import Dataset
from equicaps.images import angle_difference, centroid, principal_axis, rotate
from equicaps.inference import Prediction
from equicaps.metrics import pose_errors
from reproduction.results import Record

ROUND = 0.8
"""Ratio of minor to major axis from which a source counts as round: it has no axis to compare with."""
CENTRED = 0.5
"""Pixels up to which the centroid of the light counts as central: it has no direction to compare with."""
PERIODS = {"axis": 180, "centroid": 360}
"""An axis looks the same after half a turn, a direction does not."""
CURVE = [7.5 * step for step in range(13)]
"""The angles, in degrees, by which the test images are rotated."""

Predict = Callable[[Tensor], Prediction]


@torch.no_grad()
def compare_with_moments(predict: Predict, valid: Dataset, test: Dataset) -> Record:
    """Poses beside the axis and the centroid of the light, and how they follow a rotation.

    For each predicted class and kind of angle one offset is fitted on the validation sources: a pose rotates with the
    image, but nothing fixes the direction that it counts from.
    """
    fitted, found = predict(valid.images[:]), predict(test.images[:])
    references = {}
    for kind, period in PERIODS.items():
        (reference, known), (expected, chosen) = (
            _from_moments(kind, valid.images[:]),
            _from_moments(kind, test.images[:]),
        )
        known, chosen = known & fitted.angles.isfinite(), chosen & found.angles.isfinite()
        classes = len(test.classes)
        offsets = fit_offsets(fitted.labels, fitted.angles, reference, known, classes=classes, period=period)
        corrected = found.angles - torch.tensor(offsets)[found.labels]
        differences = angle_difference(corrected, expected, period)
        groups = {"all": chosen} | {name: chosen & (test.labels == k) for k, name in enumerate(test.classes)}
        references[kind] = {
            "offsets": offsets,
            "differences": {name: spread(differences[group]) for name, group in groups.items()},
            "control": spread(angle_difference(corrected[chosen], expected[chosen].roll(1), period)),
            "poses": [_rounded(value) for value in (corrected % 360).tolist()],
            "expected": [_rounded(value) for value in expected.where(chosen, torch.nan).tolist()],
        }
    elongated = _from_moments("axis", test.images[:])[1]
    return {
        **references,
        "predicted": as_digits(found.labels),
        "curve": rotation_curve(predict, test, elongated, CURVE),
    }


def fit_offsets(
    labels: Int[Tensor, " n"],
    angles: Float[Tensor, " n"],
    reference: Float[Tensor, " n"],
    chosen: Bool[Tensor, " n"],
    *,
    classes: int,
    period: int,
) -> list[float]:
    """For each class the circular mean of angle minus reference over the chosen sources."""
    found = []
    for label in range(classes):
        differences = torch.deg2rad((angles - reference)[chosen & (labels == label)] * 360 / period)
        mean = torch.atan2(differences.sin().sum(), differences.cos().sum())
        found.append(torch.rad2deg(mean).item() * period / 360)
    return found


def spread(differences: Float[Tensor, " n"]) -> Record | None:
    """The quartiles of the absolute differences; None if there are none."""
    if not len(differences):
        return None
    quartiles = differences.abs().quantile(torch.tensor([0.25, 0.5, 0.75]).to(differences)).tolist()
    return {"sources": len(differences), "quartiles": quartiles}


def rotation_curve(
    predict: Predict, data: Dataset, elongated: Bool[Tensor, " n"], angles: Sequence[float]
) -> list[Record]:
    """What rotating all images by each of the angles does to predictions, poses and axes."""
    before, axis, each = predict(data.images[:]), _from_moments("axis", data.images[:])[0], torch.arange(len(data))
    curve = []
    for degrees in angles:
        by = torch.full((len(data),), degrees)
        images = rotate(data.images[:], by)
        after = predict(images)
        poses = [found.output.poses[each, before.labels] for found in (before, after)]
        errors = pose_errors(poses[0], poses[1], by)[elongated]
        axis_errors = angle_difference(_from_moments("axis", images)[0], axis + by, 180)[elongated].abs()
        curve.append(
            {"degrees": degrees, "predictions_changed": int((before.labels != after.labels).sum()),
             "pose_error_median": errors.median().item(), "pose_error_mean": errors.mean().item(),
             "axis_error_median": axis_errors.median().item()}
        )  # fmt: skip
    return curve


def as_digits(labels: Int[Tensor, " n"]) -> str:
    """Labels below 10 as a text with one digit each, which keeps records short."""
    return "".join(map(str, labels.tolist()))


def _from_moments(kind: str, images: Float[Tensor, "n 1 side side"]) -> tuple[Tensor, Tensor]:
    """Angles from the moments of the intensities, whose square roots the images are, and where they mean something."""
    intensities = images[:, 0] ** 2
    if kind == "axis":
        axis = principal_axis(intensities)
        return axis.degrees, axis.roundness < ROUND
    light = centroid(intensities)
    return light.degrees, light.distance > CENTRED


def _rounded(value: float) -> float | None:
    """Two decimals; None for NaN, which JSON does not have."""
    return round(value, 2) if value == value else None
