"""Table 1b: how far poses are off; Figure 5: the same for each class."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import Dataset
from equicaps.errors import TrainingError
from equicaps.images import rotate
from equicaps.losses import true_poses
from equicaps.metrics import pose_errors
from equicaps.models import GroupCapsNet
from reproduction.naive import SIZE, naive_errors
from reproduction.session import Record, Session, described
from reproduction.table1a import TESTED_ON

ROWS = {
    "labels_only": "rotated-steerable-labels_only",
    "reconstruction": "rotated-steerable-reconstruction",
    "consistency": "rotated-steerable",
}
"""Row -> training; the last has the consistency and the reconstruction loss."""

EXTRA = ("rotated-paper", "rotated-capsules_only")
BIN = 10
"""Degrees in a bin of Figure 5."""


def table1b(session: Session) -> Record:
    """Writes ``table1b.json``: ``rows[ROW]`` with mean, median and a histogram for each class, and ``extra``."""
    digits = session.digits()
    measured = {"tested_on": TESTED_ON["rotated"], "test_images": len(digits), "seed": 0}
    rows: dict[str, Record | None] = {
        name: {**_figures(naive_errors(digits, hierarchical=name == "naive"), digits.labels), **measured}
        for name in ("naive", "naive_at_once")
    }
    for row, run in ROWS.items():
        rows[row] = _measured(session, run, digits)
    extra = {run: _recorded(session, run) for run in EXTRA}
    return session.write("table1b", {"bin_degrees": BIN, "rows": rows, "extra": extra})


def errors_of(
    network: GroupCapsNet, digits: Dataset, session: Session, what: str, *, seed: int = 0, batch: int = 250
) -> Float[Tensor, " n"]:
    """Degrees, image by image: :func:`equicaps.metrics.evaluate` before its means."""
    degrees = torch.rand(len(digits), generator=torch.Generator().manual_seed(seed)) * 360
    parts = list(zip(digits.images.split(batch), digits.labels.split(batch), degrees.split(batch), strict=True))
    errors = []
    with torch.no_grad():
        for images, labels, angle in session.watcher.each(parts, what):
            upright, turned = (network(rotate(images, by, SIZE)) for by in (torch.zeros_like(angle), angle))
            errors.append(pose_errors(true_poses(upright, labels), true_poses(turned, labels), angle))
    return torch.cat(errors)


def _measured(session: Session, run: str, digits: Dataset) -> Record | None:
    entry, network = _recorded(session, run), session.network(run)
    if entry is None or network is None:
        return None
    figures = _figures(errors_of(network, digits, session, f"pose errors of {run}"), digits.labels)
    if abs(figures["pose_error_mean"] - entry["pose_error_mean"]) > 0.1:
        raise TrainingError(
            f"{run}: the weights' pose error is {figures['pose_error_mean']:.2f} degrees, but the record says "
            f"{entry['pose_error_mean']:.2f}: they do not belong together."
        )
    return {**entry, **figures}


def _recorded(session: Session, run: str) -> Record | None:
    record = session.record(run)
    return None if record is None else described(record, TESTED_ON["rotated"])


def _figures(errors: Float[Tensor, " n"], labels: Int[Tensor, " n"]) -> Record:
    classes = [errors[labels == digit] for digit in range(10)]
    return {
        "pose_error_mean": errors.mean().item(),
        "pose_error_median": errors.median().item(),
        "classes": [
            {"mean": part.mean().item(), "median": part.median().item(), "fractions": _fractions(part)}
            for part in classes
        ],
    }


def _fractions(errors: Float[Tensor, " n"]) -> list[float]:
    """The share of errors in every bin from 0 to 180 degrees."""
    counts = torch.histc(errors.clamp(0, 180), bins=180 // BIN, min=0, max=180)
    return (counts / len(errors)).tolist()
