"""``results/galaxies.json`` to the tables and the picture of ``docs/galaxies.md``."""

from pathlib import Path

import torch

from equicaps.data import Dataset
from equicaps.errors import UsageError
from reproduction.galaxies import CENTRED, PERIODS, ROUND
from reproduction.markdown import markdown_table
from reproduction.session import Record

PAGE = Path("docs") / "galaxies.md"
PICTURE = Path("docs") / "figures" / "galaxies.png"
COLUMNS = 8
"""Sources of each class in the picture: the first ones of the test split."""

LABELS = {
    "steerable": "**`steerable`**, turned in training",
    "cnn_turned": "the same layers without poses (`steerable_cnn`), turned in training",
    "cnn": "the same, trained on the images as they are",
    "paper_cnn_turned": "the paper's plain CNN (`plain_cnn`), turned in training",
    "paper_cnn": "the same, trained on the images as they are",
}
KINDS = {
    "axis": f"all with minor / major axis < {ROUND}",
    "centroid": f"all with their light > {CENTRED} pixels off the middle",
}


def tables(record: Record) -> dict[str, str]:
    """Name of a block of the page -> its content."""
    return {
        "results": results(record),
        "classes": classes(record),
        "axes": axes(record, "axis"),
        "directions": axes(record, "centroid"),
        "turning": turning(record),
        "trials": trials(record),
    }


def results(record: Record) -> str:
    """Accuracies with their intervals, and what turning changes."""
    rows, shown = record["rows"], []
    for method, row in rows.items():
        still, turned = row["as_they_are"], row["any_angle"]
        shown.append(
            [LABELS[method], f"{row['parameters']:,}", str(row["seeds"]), _accuracy(still), _accuracy(turned),
             "" if method == "steerable" else _difference(turned),
             f"{row['quarter_turns_changed']:,} of {row['quarter_turns']:,}", f"{row['any_angle_changed']:.1f} %"]
        )  # fmt: skip
    head = ["", "parameters", "seeds", "as they are", "at any angle", "any angle, less `steerable`",
            "answers changed by quarter turns", "by any angle"]  # fmt: skip
    first, runs = next(iter(rows.values())), record["runs"]
    commits = ", ".join(sorted({f"`{run['commit']}`" for run in runs}))
    return markdown_table(head, shown) + (
        f"\nTest accuracy on {record['data']['images']} sources, mean over the seeds, with Wilson's 95 % interval; "
        f"every training saw {first['images_seen']:,} views. Differences are "
        f"paired, source by source, ± 1.96 standard errors. All {len(runs)} trainings took "
        f"{sum(run['cpu_minutes'] for run in runs):.0f} CPU-minutes (commit {commits}).\n"
    )


def classes(record: Record) -> str:
    """Right answers class by class; the test split is balanced, and the record shows whether that is so."""
    rows = [
        [LABELS[method], *(f"{value:.0f} %" for value in row["any_angle"]["by_class"]),
         f"{row['any_angle']['balanced_accuracy']:.1f} %", _seeds(row["any_angle"])]
        for method, row in record["rows"].items()
    ]  # fmt: skip
    return markdown_table(
        ["at any angle", *record["data"]["classes"], "balanced accuracy", "accuracy, seed by seed"], rows
    )


def axes(record: Record, kind: str) -> str:
    """Poses against one kind of angle from moments."""
    runs = [run for run in record["runs"] if "axes" in run]
    names = {"all": KINDS[kind], **{name: name for name in record["data"]["classes"]}}
    rows = [
        [f"{shown} ({_count(runs[0], kind, name)})", *(_spread(run["axes"][kind]["differences"][name]) for run in runs)]
        for name, shown in names.items()
    ]
    rows.append(["control: angle of another source", *(_spread(run["axes"][kind]["control"]) for run in runs)])
    head = ["median (quartiles) of the difference", *(f"seed {run['seed']}" for run in runs)]
    return markdown_table(head, rows) + f"\nChance is {PERIODS[kind] // 4}°.\n"


def turning(record: Record) -> str:
    """How poses and axes follow a turn, seed 0."""
    curve = next(run["axes"]["curve"] for run in record["runs"] if "axes" in run)
    rows = [
        [f"{row['degrees']:g}°", str(row["predictions_changed"]), _degrees(row["pose_error_median"]),
         _degrees(row["pose_error_mean"]), _degrees(row["axis_error_median"])]
        for row in curve
    ]  # fmt: skip
    exact = next(run["test"]["exactness"] for run in record["runs"] if "axes" in run)
    return markdown_table(
        ["turned by", "answers changed", "pose, median", "pose, mean", "axis from moments, median"], rows
    ) + (
        f"\nQuarter turns of {exact['images']} images (as they are, and at any angle): {exact['predictions_changed']} "
        f"answers changed; scores change by at most {exact['scores']:.0e}, agreements by {exact['activations']:.0e}, "
        f"poses by {exact['poses']:.0e}.\n"
    )


def trials(record: Record) -> str:
    """Validation accuracy of what was tried."""
    rows = [
        [trial["trial"], f"{trial['valid_accuracy_any_angle']:.1f} %", f"{trial['images_seen']:,}",
         f"{trial['cpu_minutes']:.1f}"]
        for trial in record["trials"]
    ]  # fmt: skip
    return markdown_table(["`steerable`, seed 0", "validation accuracy, any angle", "views seen", "CPU-minutes"], rows)


def draw(path: Path, record: Record, data: Dataset) -> None:
    """The first test sources of each class: the pose as an arrow, the axis from moments as a line."""
    try:
        from matplotlib.figure import Figure

        from reproduction.plots import BLUE, DOTS_PER_INCH, ORANGE, show_image, show_pose
    except ImportError as error:
        raise UsageError(str(error)) from error
    found = next(run["axes"] for run in record["runs"] if "axes" in run)
    figure = Figure((COLUMNS + 0.3, len(data.classes) + 0.5), dpi=DOTS_PER_INCH, layout="constrained")
    for row, name in enumerate(data.classes):
        for column, place in enumerate((data.labels == row).nonzero().flatten().tolist()[:COLUMNS]):
            axes = figure.add_subplot(len(data.classes), COLUMNS, row * COLUMNS + column + 1)
            half = show_image(axes, data.images[place, 0])
            axis, pose = found["axis"]["expected"][place], found["centroid"]["poses"][place]
            if axis is not None:
                x, y = (0.9 * half * _direction(axis)).tolist()
                axes.plot([-x, x], [-y, y], color=ORANGE, linewidth=1.0)
            if pose is not None:
                show_pose(axes, _direction(pose), 0.75 * half, BLUE)
            if column == 0:
                axes.set_ylabel(name, fontsize=9)
            if (predicted := int(found["predicted"][place])) != row:
                axes.set_title(f"read as {data.classes[predicted]}", fontsize=7, pad=2)
    figure.supxlabel("blue: pose read by `steerable`; orange: axis from intensity moments, where elongated", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": None})


def _direction(degrees: float) -> torch.Tensor:
    angle = torch.deg2rad(torch.tensor(degrees))
    return torch.stack((angle.cos(), angle.sin()))


def _accuracy(view: Record) -> str:
    low, high = view["interval"]
    return f"{view['accuracy']:.1f} % ({low:.1f} to {high:.1f})"


def _difference(view: Record) -> str:
    return f"{view['less_than_reference']:+.1f} ± {view['plus_minus']:.1f}"


def _seeds(view: Record) -> str:
    return ", ".join(f"{value:.1f}" for value in view["by_seed"])


def _count(run: Record, kind: str, name: str) -> int:
    found = run["axes"][kind]["differences"][name]
    return found["sources"] if found else 0


def _spread(found: Record | None) -> str:
    if found is None:
        return "none"
    low, median, high = found["quartiles"]
    return f"{median:.1f}° ({low:.1f} to {high:.1f})"


def _degrees(value: float) -> str:
    return f"{value:.2f}°"
