"""Table 1b: the error of the poses; Figure 5: the same for each class."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Dataset
from equicaps.errors import TrainingError
from equicaps.images import rotate
from equicaps.losses import true_poses
from equicaps.metrics import pose_errors
from equicaps.models import GroupCapsNet
from equicaps.nn import ImagePoses
from reproduction import plots
from reproduction.protocols import ANY_ANGLE, SIZE
from reproduction.results import Record, Results

ROWS = {
    "labels_only": "rotated-steerable-labels_only",
    "reconstruction": "rotated-steerable-reconstruction",
    "consistency": "rotated-steerable",
}
"""Row -> training; the last one has the consistency loss and the reconstruction loss."""

BIN = 10
"""The width in degrees of a bin of Figure 5."""

ReadPoses = Callable[[Tensor, Tensor], Tensor]
"""Images and their labels to poses."""


def table1b(results: Results) -> Record:
    """Write ``table1b.json`` and draw Figure 5.

    ``rows[ROW]`` has the mean, the median and a histogram for each class.
    """
    digits = results.digits()
    rows: dict[str, Record | None] = {
        name: {
            **_statistics(errors_at_any_angle(_naive(hierarchical=name == "naive"), digits, results, name), digits),
            "tested_on": ANY_ANGLE,
            "test_images": len(digits),
            "seed": 0,
        }
        for name in ("naive", "naive_at_once")
    }
    rows |= {row: measured_poses(results, training, digits) for row, training in ROWS.items()}
    record = results.write("table1b", {"rows": rows})
    path = results.pictures / "pose_error_by_class.png"
    plots.pose_error_by_class(path, record["rows"]["consistency"], "steerable", record["rows"]["naive"])
    return record


def naive_poses(images: Float[Tensor, "batch 1 size size"], *, hierarchical: bool = True) -> Float[Tensor, "batch 2"]:
    """The paper's baseline without a network (Section 6.2): the mean of an image's Sobel poses.

    Poses are averaged in blocks of 2x2 until one is left, and every mean is normalised plainly, as the authors do:
    where poses cancel, rounding noise becomes a direction. All local poses have the same weight.

    Args:
        images: square, with a side that is a power of 2.
        hierarchical: the paper's baseline; otherwise one mean over the whole image, which turns out to be better.
    """
    size = images.shape[-1]
    if size & (size - 1):
        raise ValueError(
            f"naive_poses: blocks of 2x2 need a side that is a power of 2, but it is {size}; pad the images."
        )
    poses = ImagePoses("sobel")(images).poses.squeeze(1)
    if not hierarchical:
        return F.normalize(poses.sum((1, 2)), dim=-1)
    while poses.shape[1] > 1:
        blocks = poses.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
        poses = F.normalize(blocks.sum((2, 4)), dim=-1)
    return poses.flatten(1)


@torch.no_grad()
def errors_at_any_angle(
    read_poses: ReadPoses, digits: Dataset, results: Results, what: str, *, batch: int = 250
) -> Float[Tensor, " n"]:
    """The pose error of each digit in degrees, rotated by the seeded angles of :class:`equicaps.training.AnyAngle`."""
    degrees = torch.rand(len(digits), generator=torch.Generator().manual_seed(0)) * 360
    parts = list(zip(digits.images.split(batch), digits.labels.split(batch), degrees.split(batch), strict=True))
    errors = []
    for images, labels, angles in results.track(parts, f"pose errors, {what}"):
        upright, rotated = (read_poses(rotate(images, by, SIZE), labels) for by in (torch.zeros_like(angles), angles))
        errors.append(pose_errors(upright, rotated, angles))
    return torch.cat(errors)


def _naive(*, hierarchical: bool) -> ReadPoses:
    return lambda images, labels: naive_poses(images, hierarchical=hierarchical)


def _of_true_class(network: GroupCapsNet) -> ReadPoses:
    return lambda images, labels: true_poses(network(images), labels)


def measured_poses(results: Results, name: str, digits: Dataset) -> Record | None:
    """A training's entry with the statistics of its pose errors; None if it is missing."""
    trained = results.trained(name)
    if trained is None:
        return None
    entry, network = trained
    figures = _statistics(errors_at_any_angle(_of_true_class(network), digits, results, name), digits)
    if abs(figures["pose_error_mean"] - entry["pose_error_mean"]) > 0.1:
        raise TrainingError(
            f"{name}: the pose error of the weights is {figures['pose_error_mean']:.2f} degrees, but their record says "
            f"{entry['pose_error_mean']:.2f}: they do not belong together. Train again, or restore both files."
        )
    return {**entry, **figures}


def _statistics(errors: Float[Tensor, " n"], digits: Dataset) -> Record:
    return {
        "pose_error_mean": errors.mean().item(),
        "pose_error_median": errors.median().item(),
        "classes": [_of_class(errors[digits.labels == digit]) for digit in range(10)],
    }


def _of_class(errors: Float[Tensor, " n"]) -> Record:
    """Mean, median, and the fraction of the errors in each bin from 0 to 180 degrees."""
    counts = torch.histc(errors.clamp(0, 180), bins=180 // BIN, min=0, max=180)
    return {
        "mean": errors.mean().item(),
        "median": errors.median().item(),
        "fractions": (counts / len(errors)).tolist(),
    }
