"""``docs/galaxies.md``: its tables from ``results/galaxies.json``, and what its commands print."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from rich.console import Console

from equicaps._files import create_folder
from equicaps.data import Dataset
from equicaps.errors import TrainingError
from reproduction.galaxy_poses import CENTRED, PERIODS, ROUND
from reproduction.markdown import markdown_table
from reproduction.results import Record

LABELS = {
    "steerable": "**`steerable`**, rotated in training",
    "cnn_turned": "`steerable_cnn` (the same layers without poses), rotated in training",
    "cnn": "`steerable_cnn`, not rotated in training",
    "paper_cnn_turned": "`plain_cnn` (the paper's plain CNN), rotated in training",
    "paper_cnn": "`plain_cnn`, not rotated in training",
}
SUBSETS = {
    "axis": f"all with minor / major axis < {ROUND}",
    "centroid": f"all with the centroid > {CENTRED} pixels off the centre",
}


def tables(record: Record) -> dict[str, str]:
    """Name of a block of the page -> its content."""
    return {
        "results": _results(record),
        "classes": _classes(record),
        "axes": _differences(record, "axis"),
        "directions": _differences(record, "centroid"),
        "rotation": _rotation(record),
        "trials": _trials(record),
    }


def run_commands(text: str, trained: Path, sources: Dataset, root: Path | None, console: Console) -> str:
    """The page's text with every ``$ equicaps ...`` run again and its output replaced.

    Args:
        text: of the page.
        trained: the folder of the training that the page's own command repeats.
        sources: test sources, some of which the commands read as images.
        root: the folder of the data; by default found.
        console: shows each command.
    """
    environment = {**os.environ, "COLUMNS": "110", **({"EQUICAPS_DATA": str(root)} if root else {})}
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder, "sources"), sources)
        shutil.copytree(trained, Path(folder, "runs", "galaxies"))

        def run(block: re.Match[str]) -> str:
            console.print(block[1], markup=False, highlight=False)
            program = [sys.executable, "-m", "equicaps.cli.main", *block[1].split()[1:]]
            done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise TrainingError(f"{block[1]} failed: {done.stdout}{done.stderr}")
            lines = "\n".join(line.rstrip() for line in done.stdout.splitlines())
            return f"```console\n$ {block[1]}\n{lines}\n```"

        return re.sub(r"```console\n\$ (equicaps .*)\n(?:.*\n)*?```", run, text)


def write_images(folder: Path, sources: Dataset) -> None:
    """Write three sources of each class as PNG files."""
    create_folder(folder)
    for label, name in enumerate(sources.classes):
        for number, place in enumerate((sources.labels == label).nonzero().flatten().tolist()[:3]):
            pixels = (sources.images[place, 0] * 255).round().byte().numpy()
            Image.fromarray(pixels).save(folder / f"{name}-{number}.png")


def _results(record: Record) -> str:
    """Accuracies with their intervals, and what rotations change."""
    rows = [
        [LABELS[method], f"{row['parameters']:,}", str(row["seeds"]), _accuracy(row["as_they_are"]),
         _accuracy(row["any_angle"]), "" if method == "steerable" else _difference(row["any_angle"]),
         f"{row['quarter_turns_changed']:,} of {row['quarter_turns']:,}", f"{row['any_angle_changed']:.1f} %"]
        for method, row in record["rows"].items()
    ]  # fmt: skip
    head = ["network", "parameters", "seeds", "accuracy, unrotated", "accuracy, any angle",
            "any angle, compared with `steerable`", "predictions changed by quarter turns",
            "by random angles"]  # fmt: skip
    views, runs = next(iter(record["rows"].values()))["images_seen"], record["runs"]
    commits = ", ".join(sorted({f"`{run['commit']}`" for run in runs}))
    return markdown_table(head, rows) + (
        f"\nTest accuracy on {record['data']['images']} sources, averaged over the seeds, with Wilson's 95 % interval; "
        f"every training saw {views:,} views. Differences are paired, source by source, ± 1.96 standard errors. All "
        f"{len(runs)} trainings together took {sum(run['cpu_minutes'] for run in runs):.0f} CPU-minutes (commit "
        f"{commits}).\n"
    )


def _classes(record: Record) -> str:
    """Accuracy for each class; the balanced accuracy shows whether the test split is balanced."""
    rows = [
        [LABELS[method], *(f"{value:.0f} %" for value in row["any_angle"]["by_class"]),
         f"{row['any_angle']['balanced_accuracy']:.1f} %",
         ", ".join(f"{value:.1f}" for value in row["any_angle"]["by_seed"])]
        for method, row in record["rows"].items()
    ]  # fmt: skip
    return markdown_table(
        ["accuracy at any angle", *record["data"]["classes"], "balanced accuracy", "accuracy for each seed"], rows
    )


def _differences(record: Record, kind: str) -> str:
    """Poses against one kind of angle from moments."""
    runs = [run for run in record["runs"] if "axes" in run]
    first = runs[0]["axes"][kind]["differences"]
    names = {"all": SUBSETS[kind], **{name: name for name in record["data"]["classes"]}}
    rows = [
        [f"{shown} ({first[name]['sources'] if first[name] else 0})",
         *(_quartiles(run["axes"][kind]["differences"][name]) for run in runs)]
        for name, shown in names.items()
    ]  # fmt: skip
    rows.append(["control: the angle of another source", *(_quartiles(run["axes"][kind]["control"]) for run in runs)])
    head = ["median (quartiles) of the difference", *(f"seed {run['seed']}" for run in runs)]
    return markdown_table(head, rows) + f"\nChance is {PERIODS[kind] // 4}°.\n"


def _rotation(record: Record) -> str:
    """How poses and axes follow a rotation, for the first seed."""
    run = next(run for run in record["runs"] if "axes" in run)
    rows = [
        [f"{row['degrees']:g}°", str(row["predictions_changed"]),
         *(f"{row[name]:.2f}°" for name in ("pose_error_median", "pose_error_mean", "axis_error_median"))]
        for row in run["axes"]["curve"]
    ]  # fmt: skip
    head = ["rotated by", "predictions changed", "pose error, median", "pose error, mean",
            "error of the axis from moments, median"]  # fmt: skip
    exact = run["test"]["exactness"]
    return markdown_table(head, rows) + (
        f"\nQuarter turns of {exact['images']} images (unrotated, and at random angles): "
        f"{exact['predictions_changed']} predictions changed; scores change by at most {exact['scores']:.0e}, "
        f"agreements by {exact['activations']:.0e}, poses by {exact['poses']:.0e}.\n"
    )


def _trials(record: Record) -> str:
    """Validation accuracy of what was tried."""
    rows = [
        [trial["trial"], f"{trial['valid_accuracy_any_angle']:.1f} %", f"{trial['images_seen']:,}",
         f"{trial['cpu_minutes']:.1f}"]
        for trial in record["trials"]
    ]  # fmt: skip
    return markdown_table(["`steerable`, seed 0", "validation accuracy, any angle", "views seen", "CPU-minutes"], rows)


def _accuracy(view: Record) -> str:
    low, high = view["interval"]
    return f"{view['accuracy']:.1f} % ({low:.1f} to {high:.1f})"


def _difference(view: Record) -> str:
    return f"{view['less_than_reference']:+.1f} ± {view['plus_minus']:.1f}"


def _quartiles(found: Record | None) -> str:
    if found is None:
        return "none"
    low, median, high = found["quartiles"]
    return f"{median:.1f}° ({low:.1f} to {high:.1f})"
