"""Records to Markdown; what was not run says so."""

from collections.abc import Iterable, Mapping
from typing import Any

from equicaps.models import GroupCapsNet
from reproduction import table1a, table1b
from reproduction.markdown import markdown_table
from reproduction.published import CHANGE, GOALS, Goal
from reproduction.session import Record

Records = Mapping[str, Record | None]
MISSING = "not yet run"

README_ROWS = (
    "quarters", "any_angle", "rotated/whole", "rotated/capsules", "mnist_rot/whole", "mnist_rot/capsules",
    "affnist/whole", "affnist/capsules", "pose/naive", "pose/labels_only", "pose/reconstruction", "pose/consistency",
)  # fmt: skip

COLUMNS = {
    "rotated": "MNIST, turned on the fly (50k)",
    "mnist_rot": "MNIST-rot, regenerated (10k)",
    "affnist": "affNIST, regenerated",
}
LABELS = {
    "plain_cnn": "plain CNN: the paper's convolutions without poses (`plain_cnn`)",
    "capsules": "capsules alone (`steerable_capsules`)",
    "without_poses": "whole, without routing poses (`steerable_cnn`)",
    "whole": "**whole** (`steerable`)",
}
POSE_LABELS = {
    "naive": "naive: Sobel poses averaged in 2x2 blocks, hierarchically",
    "naive_at_once": "naive, all Sobel poses of the image at once",
    "labels_only": "`steerable`, class labels only",
    "reconstruction": "`steerable`, with reconstruction loss",
    "consistency": "`steerable`, with consistency and reconstruction loss",
}
FIGURES = {
    "output_poses": "Figure 4a: the pose of the digit's class while the digit is turned in 45° steps. The first test "
    "digit of each class; in the bottom row the worst of a few hundred test digits.",
    "layer_poses": "Figure 4b: poses after the first and the second layer, of each layer's most active capsule.",
    "reconstructions": "Figure 4c: the first test digit of each class, its reconstruction, and reconstructions with "
    "all poses turned in 45° steps. Not selected.",
}


def ours(records: Records) -> dict[str, float | None]:
    """Our figure for every key of the goals."""
    values: dict[str, float | None] = dict.fromkeys(GOALS)
    networks = (records["exactness"] or {}).get("networks", {})
    whole, plain = networks.get("whole"), networks.get("plain_cnn")
    if whole:
        values["quarters"], values["any_angle"] = min(whole["quarters"]["accuracy"].values()), whole["accuracy"]
    if plain:
        values["any_angle_cnn"] = plain["accuracy"]
    for row, cells in (records["table1a"] or {}).get("cells", {}).items():
        values |= {f"{column}/{row}": entry["accuracy"] for column, entry in cells.items() if entry}
    for row, entry in (records["table1b"] or {}).get("rows", {}).items():
        if entry:
            values[f"pose/{row}"] = entry["pose_error_mean"]
    return values


def readme(records: Records) -> str:
    """The short table: paper beside ours."""
    values = ours(records)
    rows = [[GOALS[key].what, _paper(GOALS[key]), f"**{_value(GOALS[key], values[key])}**"] for key in README_ROWS]
    return (
        markdown_table(["", "paper", "equicaps"], rows)
        + "\nEvery figure with its training, data and cost: [results](docs/results.md). "
        + "`equicaps reproduce all` makes them again.\n"
    )


def page(records: Records) -> str:
    """``docs/results.md``."""
    parts = [
        "# Results\n",
        "Written by `equicaps reproduce` from the files in `results/`; `equicaps reproduce all` trains and measures\n"
        "everything again. Do not edit: `python -m reproduction.pages` writes this page.\n",
        "MNIST-rot and affNIST are *regenerated* from MNIST ([data](data.md)), so the paper's figures beside them are\n"
        "for other images of the same kind. All trainings have one seed, given below; CPU-minutes are of one thread.\n",
        "## Paper, target, ours\n",
        _glance(records),
        "## Trained upright, tested turned\n",
        _exactness(records["exactness"]),
        "## Table 1a: accuracy\n",
        _accuracy(records["table1a"]),
        "## The paper's network beside `steerable` on the same budget\n",
        _same_budget(records),
        "## Table 1b: pose error\n",
        _poses(records["table1b"]),
        "## Figures\n",
        _figures(records["figures"]),
    ]
    return "\n".join(parts)


def guarantees(records: Records) -> str:
    """The measured part of ``docs/guarantees.md``: what quarter turns change, and the accuracy from 0 to 90 degrees."""
    networks = _present((records["exactness"] or {}).get("networks", {}))
    if not networks:
        return f"{MISSING}\n"
    first = next(iter(networks.values()))
    places = [at for at, angle in enumerate(first["curve"]["degrees"]) if angle <= 90]
    head = ["trained on upright digits only", *(f"{first['curve']['degrees'][at]}°" for at in places)]
    rows = [
        [f"`{entry['preset']}`", *(f"{entry['curve']['accuracy'][at]:.1f} %" for at in places)]
        for entry in networks.values()
    ]
    text = f"Accuracy on {first['curve']['test_images']:,} test digits, each turned by:\n\n" + markdown_table(
        head, rows
    )
    any_angle = (records["table1a"] or {}).get("cells", {}).get("whole", {}).get("rotated")
    if any_angle:
        mean, median = (f"{any_angle[f'pose_error_{kind}']:.1f}°" for kind in ("mean", "median"))
        text += (
            f"\nTrained on digits at any angle (`{any_angle['run']}`): {_number(any_angle['accuracy'])} of "
            f"{any_angle['test_images']:,} test digits at random angles, the angle off by {mean} on average "
            f"(median {median}).\n"
        )
    changes = _deviations(records["exactness"])
    return f"{text}\nLargest changes under turns by 90, 180 and 270 degrees, float32:\n\n{changes}"


def _glance(records: Records) -> str:
    rows = []
    values = ours(records)
    for key, goal in GOALS.items():
        value = values[key]
        reached = None if value is None else goal.reached(value)
        if key == "quarters" and reached:
            reached = _unchanged(records["exactness"])
        sign = {"%": "≥", "°": "≤"}[goal.unit]
        target = "" if goal.target is None else f"{sign} {_number(goal.target, goal.unit)}"
        verdict = {None: "", True: "yes", False: "**no**"}[reached]
        rows.append([goal.what, _paper(goal), goal.where, target, _value(goal, value), verdict])
    return markdown_table(["", "paper", "there", "target", "equicaps", "reached"], rows)


def _unchanged(record: Record | None) -> bool:
    whole = (record or {}).get("networks", {}).get("whole")
    if not whole:
        return False
    same = len(set(whole["quarters"]["accuracy"].values())) == 1
    return same and all(found["predictions_changed"] == 0 for found in whole["deviations"].values())


def _exactness(record: Record | None) -> str:
    networks = _present((record or {}).get("networks", {}))
    if not networks:
        return f"{MISSING}\n"
    angles = ("0", "90", "180", "270")
    rows = [
        [
            f"`{entry['preset']}`",
            *(_number(entry["quarters"]["accuracy"][angle]) for angle in angles),
            _number(entry["accuracy"]),
        ]
        for entry in networks.values()
    ]
    text = markdown_table(["trained on upright digits", *(f"{angle}°" for angle in angles), "any angle"], rows)
    text += "\nWhat a turn by 90, 180 and 270 degrees changes, at most, in float32 (the paper: numerical errors "
    text += f"< {CHANGE:g}):\n\n"
    text += _deviations(record)
    curve = next(iter(networks.values()))["curve"]
    text += "\n" + _picture("accuracy_by_angle", f"Accuracy over the angle, {curve['test_images']:,} test digits.")
    return text + _provenance(networks.values())


def _deviations(record: Record | None) -> str:
    parts = [_present((record or {}).get(part, {})) for part in ("networks", "trained_turned")]
    changes = [
        [f"`{entry['run']}`", f"{found['images']:,} {name}", f"{found['predictions_changed']:,}",
         *(f"{found[part]:.1e}" for part in ("scores", "activations", "poses")), f"{found['poses_defined']:.0f} %"]
        for part in parts
        for entry in part.values()
        for name, found in entry["deviations"].items()
    ]  # fmt: skip
    head = ["training", "digits", "predictions changed", "scores", "agreements", "poses", "poses defined"]
    return markdown_table(head, changes)


def _accuracy(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    rows = []
    for name, cells in record["cells"].items():
        goals = [GOALS[f"{column}/{name}"] for column in COLUMNS]
        if any(goal.paper is not None for goal in goals):
            rows.append([f"paper: {goals[0].where.split(', ')[1]}", "", *map(_paper, goals)])
        values = [cells[column] and cells[column]["accuracy"] for column in COLUMNS]
        parameters, _ = GroupCapsNet.from_preset(table1a.ROWS[name]).parameter_counts()
        ours = [_value(goal, value) for goal, value in zip(goals, values, strict=True)]
        rows.append([LABELS[name], f"{parameters:,}", *ours])
    text = markdown_table(["", "parameters", *COLUMNS.values()], rows)
    entries = [cells[column] for column in COLUMNS for cells in record["cells"].values() if cells[column]]
    return text + _provenance(entries)


def _same_budget(records: Records) -> str:
    entries = (records["table1a"] or {}).get("same_budget", dict.fromkeys(table1a.EXTRA))
    rows = [[f"`{run}`", *_cost(entry), *_both(entry), *_pose(entry)] for run, entry in entries.items()]
    head = ["", "images seen", "CPU-min", "accuracy", "of agreements", "pose error mean / median"]
    text = "MNIST turned on the fly; ours on the same number of images, and on a budget of CPU-minutes (of machines "
    text += "that were more or less busy):\n\n"
    return text + markdown_table(head, rows)


def _poses(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    rows = []
    for name, entry in record["rows"].items():
        rows.append([POSE_LABELS[name], _paper(GOALS[f"pose/{name}"]), *_mean_median(entry)])
    for run, entry in record["extra"].items():
        rows.append([f"`{run}`, a shorter training", "", *_mean_median(entry)])
    text = "Degrees between the pose of a turned test digit and the turned pose of the upright one, true class.\n\n"
    text += markdown_table(["", "paper, mean", "mean", "median"], rows)
    text += "\n" + _picture(
        "pose_error_by_class",
        f"Figure 5: the share of test digits in each bin of {table1b.BIN} degrees of pose error, class by class.",
    )
    trained = [entry for entry in [*record["rows"].values(), *record["extra"].values()] if entry and "run" in entry]
    return text + _provenance(trained)


def _figures(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    drawn = [_picture(name, caption) for name, caption in FIGURES.items() if name in record["pictures"]]
    return "\n".join([*drawn, f"From the weights of `{record['run']}`.\n"])


def _provenance(entries: Iterable[Record]) -> str:
    rows = [
        [f"`{entry['run']}`", f"{entry['trained_on']}; {entry['training_images']:,} images", entry["tested_on"],
         f"{entry['test_images']:,}", *_cost(entry), *_both(entry), str(entry["seed"]),
         str(entry["commit"]), str(entry.get("measured_with", entry["commit"]))]
        for entry in entries
    ]  # fmt: skip
    if not rows:
        return ""
    head = ["training", "trained on", "tested on", "test images", "images seen", "CPU-min", "accuracy",
            "of agreements", "seed", "trained by commit", "measured by"]  # fmt: skip
    return "\n<details><summary>Trainings</summary>\n\n" + markdown_table(head, rows) + "\n</details>\n"


def _cost(entry: Record | None) -> list[str]:
    return [MISSING, ""] if entry is None else [f"{entry['images_seen']:,}", f"{entry['cpu_minutes']:.1f}"]


def _both(entry: Record | None) -> list[str]:
    """Accuracy of scores and of agreements; agreements that no loss ever saw say nothing."""
    if entry is None:
        return ["", ""]
    trained = "config" not in entry or entry["config"]["objective"]["spread"] > 0
    return [_number(entry["accuracy"]), _number(entry["agreement_accuracy"]) if trained else ""]


def _pose(entry: Record | None) -> list[str]:
    if entry is None:
        return [""]
    undefined = f" ({entry['pose_undefined']:.0f} % undefined)" if entry.get("pose_undefined") else ""
    return [f"{entry['pose_error_mean']:.2f} / {entry['pose_error_median']:.2f}°{undefined}"]


def _mean_median(entry: Record | None) -> list[str]:
    if entry is None:
        return [MISSING, ""]
    return [_number(entry[f"pose_error_{kind}"], "°") for kind in ("mean", "median")]


def _present(entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry for name, entry in entries.items() if entry is not None}


def _picture(name: str, caption: str) -> str:
    return f"![{caption}](figures/{name}.png)\n\n{caption}\n"


def _paper(goal: Goal) -> str:
    return "" if goal.paper is None else _number(goal.paper, goal.unit)


def _value(goal: Goal, value: float | None) -> str:
    return MISSING if value is None else _number(value, goal.unit)


def _number(value: float, unit: str = "%") -> str:
    return f"{value:.2f} %" if unit == "%" else f"{value:.2f}°"
