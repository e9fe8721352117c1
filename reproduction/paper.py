"""The paper's own network: every figure of the paper, measured with it."""

from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from equicaps.training import AnyAngle, AsTheyAre
from reproduction import plots
from reproduction.exactness import measured_at_angles
from reproduction.figures import draw
from reproduction.protocols import padded
from reproduction.published import GOALS
from reproduction.results import Record, Results
from reproduction.table1b import measured_poses

SOURCES = {
    "any_angle": ("upright-paper", "accuracy"),
    "upright_cnn": ("upright-plain_cnn", "accuracy_upright"),
    "any_angle_cnn": ("upright-plain_cnn", "accuracy"),
    "rotated/plain_cnn": ("rotated-plain_cnn", "accuracy"),
    "rotated/longer_plain_cnn": ("rotated-plain_cnn-minutes", "accuracy"),
    "rotated/capsules": ("rotated-capsules_only", "accuracy"),
    "rotated/whole": ("rotated-paper", "accuracy"),
    "mnist_rot/plain_cnn": ("mnist_rot-plain_cnn", "accuracy"),
    "mnist_rot/capsules": ("mnist_rot-capsules_only", "accuracy"),
    "mnist_rot/whole": ("mnist_rot-paper", "accuracy"),
    "affnist/plain_cnn": ("affnist-plain_cnn", "accuracy"),
    "affnist/capsules": ("affnist-capsules_only", "accuracy"),
    "affnist/whole": ("affnist-paper", "accuracy"),
    "pose/labels_only": ("rotated-paper-labels_only", "pose_error_mean"),
    "pose/reconstruction": ("rotated-paper", "pose_error_mean"),
    "pose/consistency": ("rotated-paper-consistency", "pose_error_mean"),
}
"""Goal -> training and figure; accuracy at quarter turns is measured apart."""
SEEDS = ("rotated-paper", "rotated-paper-seed1", "rotated-paper-seed2")
"""The training that is repeated."""
VARIANTS = ("rotated-paper-gaussian", "rotated-paper-pooled", "rotated-paper-iterated")
"""What departs from the paper: other first poses, pooling by agreement, three routing iterations."""
PREFIX = "paper_"
"""Of the pictures that are drawn from this network."""


def paper(results: Results) -> Record:
    """Write ``paper.json``, draw Figures 4 and 5 from the paper's network, and print its table.

    ``trainings`` has the figures of every training; ``upright`` and ``rotated`` what quarter turns change; ``poses``
    the pose errors of each class; ``bicubic`` the figures on digits that were rotated with another interpolation.
    """
    names = dict.fromkeys([name for name, _ in SOURCES.values()] + [*SEEDS, *VARIANTS])
    record = {
        "trainings": {name: results.entry(name) for name in names} | {"upright-plain_cnn": _plain(results)},
        "upright": measured_at_angles(results, "upright-paper", accuracies=True),
        "rotated": measured_at_angles(results, "rotated-paper", accuracies=False),
        "poses": measured_poses(results, "rotated-paper", results.digits()),
        "bicubic": _bicubic(results),
        "pictures": draw(results, "rotated-paper", PREFIX),
    }
    if record["poses"]:
        plots.pose_error_by_class(results.pictures / f"{PREFIX}pose_error_by_class.png", record["poses"], "paper")
    written = results.write("paper", record)
    show(written, results.console)
    return written


class Figure(NamedTuple):
    """A figure of the paper's network."""

    value: float
    spread: float | None
    """The standard deviation over the seeds, of which ``value`` is the mean; None of a single training."""
    entry: Record
    """The training that it comes from, the first of several."""


def figure(record: Record, goal: str) -> Figure | None:
    """The figure of the paper's network for a goal; None if it is missing."""
    if goal == "quarters":
        found = record["upright"]
        return found and Figure(found["quarters"]["accuracy"]["0"], None, found)
    if goal not in SOURCES:
        return None
    name, key = SOURCES[goal]
    entry = record["trainings"].get(name)  # a record may be older than the name
    if entry and name == SEEDS[0]:
        value, spread, count = repeated(record)[key]
        return Figure(value, spread if count > 1 else None, entry)
    return entry and Figure(entry[key], None, entry)


def repeated(record: Record) -> dict[str, tuple[float, float, int]]:
    """Mean, standard deviation (0 of a single one) and number of the repeated training's figures."""
    entries = [entry for name in SEEDS if (entry := record["trainings"].get(name))]
    keys = ("accuracy", "agreement_accuracy", "pose_error_mean") if entries else ()
    return {key: _spread([entry[key] for entry in entries]) for key in keys}


def show(record: Record, console: Console) -> None:
    """Print the paper's figures beside those of the paper's network here."""
    table = Table(title="the paper's network", title_justify="left")
    for head in ("figure", "paper", "here", "training"):
        table.add_column(head, justify="right" if head in ("paper", "here") else "left")
    for key in ("quarters", *SOURCES):
        goal = GOALS[key]
        found = figure(record, key)
        spread = f" ± {found.spread:.2f}" if found and found.spread is not None else ""
        value = "not yet run" if found is None else f"{found.value:.2f}{spread} {goal.unit}"
        table.add_row(
            goal.what,
            f"{goal.paper:.2f} {goal.unit}" if goal.paper else "",
            value,
            SOURCES.get(key, ("upright-paper",))[0],
        )
    console.print(table)


def _spread(values: Sequence[float]) -> tuple[float, float, int]:
    return mean(values), stdev(values) if len(values) > 1 else 0.0, len(values)


def _plain(results: Results) -> Record | None:
    """CNN(*), trained upright, also tested upright."""
    trained = results.trained("upright-plain_cnn")
    if trained is None:
        return None  # it is shipped, so its weights are there
    entry, network = trained
    return {**entry, "accuracy_upright": AsTheyAre(padded(results.digits()))(network)["accuracy"]}


def _bicubic(results: Results) -> Record | None:
    """The rotated test digits again, with the other interpolation."""
    trained = results.trained("rotated-paper")
    if trained is None:
        return None
    entry, network = trained
    return {**entry, **AnyAngle(results.digits(), interpolation="bicubic")(network)}
