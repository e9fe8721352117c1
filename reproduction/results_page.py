"""``docs/results.md`` and the tables of README and ``docs/guarantees.md``, from records to Markdown.

Whatever was not run is marked as such.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

from equicaps.models import Architecture
from equicaps.training.recipe import describe_augmentation
from reproduction import paper, table1a, table1b
from reproduction.markdown import markdown_table
from reproduction.protocols import PROTOCOLS
from reproduction.published import GOALS, NUMERICAL_ERROR, PAPER_PARAMETERS, Goal
from reproduction.results import Record
from reproduction.trainings import TRAININGS

Records = Mapping[str, Record | None]
"""Experiment -> its record, if it was run."""

MISSING = "not yet run"
VERDICTS = {None: "", True: "yes", False: "**no**"}

README_ROWS = (
    "quarters", "any_angle", "rotated/whole", "rotated/capsules", "mnist_rot/whole", "mnist_rot/capsules",
    "affnist/whole", "affnist/capsules", "pose/labels_only", "pose/reconstruction", "pose/consistency",
)  # fmt: skip

PLAIN_CNN = {"rotated/plain_cnn": "rotated MNIST", "mnist_rot/plain_cnn": "MNIST-rot", "affnist/plain_cnn": "affNIST"}

EFFECTIVE = 58_538
"""Parameters of ``plain_cnn`` that can change its answers: 16 of the 25 control points of each kernel (a test)."""

COLUMNS = {
    "rotated": "MNIST, rotated on the fly (50k)",
    "mnist_rot": "MNIST-rot, regenerated (10k)",
    "affnist": "affNIST, regenerated",
}
LABELS = {
    "capsules": "capsules only",
    "without_poses": "whole network, with its poses switched off",
    "whole": "**whole network**",
}
POSE_LABELS = {
    "naive": "naive: Sobel poses averaged in 2x2 blocks, hierarchically",
    "naive_at_once": "naive: one average of all Sobel poses",
    "labels_only": "`steerable`, class labels only",
    "reconstruction": "`steerable`, with reconstruction loss",
    "consistency": "`steerable`, with consistency and reconstruction losses",
}
DIGITS = {"upright": "upright", "turned": "at random angles"}
PICTURES = {
    "output_poses": "Figure 4a: the pose of the digit's class as the digit is rotated in steps of 45°. The rows show "
    "the first test digit of each class and, at the bottom, the worst of a few hundred test digits.",
    "layer_poses": "Figure 4b: poses after the first and the second layer, of the most active capsule of each.",
    "reconstructions": "Figure 4c: the first test digit of each class, its reconstruction, and reconstructions with "
    "all poses rotated in steps of 45°. Not selected.",
}


class Measured(NamedTuple):
    """One figure of ours."""

    value: float
    entry: Record
    """Where it comes from."""
    spread: float | None = None
    """The standard deviation over several seeds, if there are several."""


def measured(records: Records) -> dict[str, Measured]:
    """The figure of our network for every goal that was measured; the naive poses need no network."""
    found = {}
    networks = _present((records["exactness"] or {}).get("networks", {}))
    if whole := networks.get("whole"):
        found["quarters"] = Measured(min(whole["quarters"]["accuracy"].values()), whole)
        found["any_angle"] = Measured(whole["accuracy"], whole)
    for row, cells in (records["table1a"] or {}).get("cells", {}).items():
        found |= {f"{column}/{row}": Measured(cell["accuracy"], cell) for column, cell in _present(cells).items()}
    for row, entry in _present((records["table1b"] or {}).get("rows", {})).items():
        found[f"pose/{row}"] = Measured(entry["pose_error_mean"], entry)
    return found


def measured_with_paper(records: Records) -> dict[str, Measured]:
    """The figure of the paper's network, trained here, for every goal that was measured."""
    record = records["paper"]
    found = {} if record is None else {key: paper.figure(record, key) for key in GOALS}
    return {key: Measured(value.value, value.entry, value.spread) for key, value in found.items() if value}


def readme(records: Records) -> str:
    """The short table of README: the paper, the paper's network here, and ours."""
    papers, ours = measured_with_paper(records), measured(records)
    rows = [
        [GOALS[key].what, _paper(GOALS[key]), _value(GOALS[key], papers.get(key)), _value(GOALS[key], ours.get(key))]
        for key in README_ROWS
    ]
    return markdown_table(["", "paper", "the paper's network, here", "`steerable`"], rows) + (
        f"\nThe paper's network has {PAPER_PARAMETERS} parameters in the paper and "
        f"{_parameters('paper') / 1000:.0f}k here, of which the capsules alone have "
        f"{_parameters('capsules_only') / 1000:.0f}k (presets `paper` and `capsules_only`); ours has "
        f"{_parameters('steerable') / 1000:.0f}k (`steerable`) and, for capsules only, "
        f"{_parameters('steerable_capsules') / 1000:.0f}k (`steerable_capsules`).\n"
        "MNIST-rot and affNIST are *regenerated* from MNIST, so there the paper's figures are of other images of the "
        "same kind.\n"
        f"{_shortfalls(papers)}{_views_of_poses(papers)}{_plain_cnn(papers)}{_repetitions(records['paper'])} "
        "[Results](docs/results.md) lists data, cost, seed and commit of each, and `make reproduce` writes these "
        "tables again.\n"
    )


def _shortfalls(papers: Mapping[str, Measured]) -> str:
    """Where the paper's network is not as good as printed."""
    behind = [GOALS[key].what for key in README_ROWS if _as_good_as_printed(GOALS[key], papers.get(key)) is False]
    return f"The paper's network falls short of the paper here in: {'; '.join(behind)}.\n" if behind else ""


def _views_of_poses(papers: Mapping[str, Measured]) -> str:
    """Two figures that stand one below the other, and of which one is of a longer training."""
    found = [papers.get(f"pose/{loss}") for loss in ("labels_only", "reconstruction")]
    views = [f"{one.entry['images_seen']:,}" for one in found if one]
    if len(set(views)) < 2:
        return ""
    return (
        f"Its pose errors were measured after {views[0]} views without the reconstruction loss, and after {views[1]} "
        "with it: that loss is not the only difference.\n"
    )


def _plain_cnn(papers: Mapping[str, Measured]) -> str:
    """The opponent, which is not always behind."""
    found = {name: papers[key] for key, name in PLAIN_CNN.items() if key in papers}
    if not found:
        return ""
    figures = ", ".join(f"{_number(one.value)} on {name}" for name, one in found.items())
    network = _network(next(iter(found.values())))
    return (
        f"A plain CNN with batch normalisation ({network}, of which {EFFECTIVE / 1000:.0f}k are effective), trained on "
        f"views of the same kind, reaches {figures}{_with_equal_minutes(papers)}.\n"
    )


def _with_equal_minutes(papers: Mapping[str, Measured]) -> str:
    longer = papers.get("rotated/longer_plain_cnn")
    if longer is None:
        return ""
    views, minutes = _cost(longer.entry)
    return (
        f"; and {_number(longer.value)} on rotated MNIST after as many CPU-minutes as the paper's network ({minutes}), "
        f"in which it sees {views} views"
    )


def _repetitions(record: Record | None) -> str:
    """What is known about the spread of the figures."""
    found = paper.repeated(record) if record else {}
    count = found["accuracy"][2] if found else 0
    if count < 2:
        return "Each figure is of one training, without repetitions."
    parts = ", ".join(
        f"{_number(found[key][0], unit)} ± {found[key][1]:.2f} {what}"
        for key, unit, what in (
            ("accuracy", "%", "(whole)"), ("agreement_accuracy", "%", "(by agreement)"),
            ("pose_error_mean", "°", "(pose error)"),
        )
    )  # fmt: skip
    return (
        f"The paper's network on rotated MNIST, mean and standard deviation of {count} seeds: {parts}; every other "
        "figure is of one training. Trainings behind rows one below the other may differ in length."
    )


def reproduction(records: Records) -> str:
    """The table of ``docs/reproduction.md``: the paper's figures and those of its network here, with their cost."""
    found = measured_with_paper(records)
    rows = []
    for key in ("quarters", *paper.SOURCES):
        entry = found[key].entry if key in found else None
        training = paper.SOURCES.get(key, ("upright-paper",))[0]
        reconstructs = "yes" if TRAININGS[training].reconstruction else ""
        figures = [GOALS[key].what, _paper(GOALS[key]), _value(GOALS[key], found.get(key))]
        rows.append([*figures, f"`{training}`", reconstructs, *_cost(entry)])
    head = ["", "paper", "here", "training", "reconstruction loss", "views seen", "CPU-minutes"]
    return markdown_table(head, rows) + f"\n{_repetitions(records['paper'])}\n"


def guarantees(records: Records) -> str:
    """The measured part of ``docs/guarantees.md``: accuracy from 0 to 90 degrees, and what quarter turns change."""
    networks = _present((records["exactness"] or {}).get("networks", {}))
    if not networks:
        return f"{MISSING}\n"
    curve = next(iter(networks.values()))["curve"]
    places = [at for at, angle in enumerate(curve["degrees"]) if angle <= 90]
    rows = [
        [f"`{entry['preset']}`", *(f"{entry['curve']['accuracy'][at]:.1f} %" for at in places)]
        for entry in networks.values()
    ]
    text = f"Accuracy on {curve['test_images']:,} test digits, all rotated by the same angle:\n\n"
    text += markdown_table(["trained on upright digits only", *(f"{curve['degrees'][at]}°" for at in places)], rows)
    any_angle = (records["table1a"] or {}).get("cells", {}).get("whole", {}).get("rotated")
    if any_angle:
        mean, median = (f"{any_angle[f'pose_error_{kind}']:.1f}°" for kind in ("mean", "median"))
        text += (
            f"\nAfter training on digits at any angle (`{any_angle['run']}`), {_number(any_angle['accuracy'])} of "
            f"{any_angle['test_images']:,} test digits at random angles are classified correctly, and their pose "
            f"error is {mean} on average (median {median}).\n"
        )
    changes = _deviations(records["exactness"])
    return f"{text}\nThe largest changes under rotations by 90, 180 and 270 degrees, in float32:\n\n{changes}"


def page(records: Records) -> str:
    """``docs/results.md``."""
    parts = [
        "# Results\n",
        "`python -m reproduction pages` writes this page from the files in `results/`; do not edit it.\n"
        "`make reproduce` measures quarter turns, accuracies by angle and pose errors again where weights are stored,\n"
        "and reads all other figures from the records in `results/runs`; `make reproduce TRAIN=1` also trains what is\n"
        "missing.\n",
        "*The paper's network* is the paper's, trained here; *ours* is `steerable`. What the column *paper* shows is "
        f"printed there,\nfor a network of {PAPER_PARAMETERS} parameters. MNIST-rot and affNIST are *regenerated* from "
        "MNIST ([data](data.md)), so the\npaper's figures beside them are of other images of the same kind. Each "
        "figure is of one training, whose seed is given\nbelow, unless it says otherwise. CPU-minutes are of one "
        "thread.\n",
        "## Paper and equicaps\n",
        _overview(records),
        "## Trained upright, tested rotated\n",
        _exactness(records["exactness"]),
        "## Table 1a: accuracy\n",
        _accuracy(records["table1a"]),
        "## Short trainings of `steerable`\n",
        _short(records["table1a"]),
        "## Table 1b: pose error\n",
        _pose_error(records["table1b"]),
        "## Figures\n",
        _figures(records["figures"]),
        "## The paper's network\n",
        _papers_network(records["paper"]),
    ]
    return "\n".join(parts)


def _overview(records: Records) -> str:
    rows = []
    papers, ours = measured_with_paper(records), measured(records)
    for key, goal in GOALS.items():
        found = ours.get(key)
        reached = None if found is None else goal.reached(found.value)
        if key == "quarters" and reached and found:
            reached = _identical(found.entry)
        sign = {"%": "≥", "°": "≤"}[goal.unit]
        target = "" if goal.target is None else f"{sign} {_number(goal.target, goal.unit)}"
        own = [_value(goal, papers.get(key)) if key in (*paper.SOURCES, "quarters") else "", _network(papers.get(key))]
        as_printed = "" if key.endswith("_cnn") else VERDICTS[_as_good_as_printed(goal, papers.get(key))]
        mine = ["", ""] if key.endswith("_cnn") else [_value(goal, found), _network(found)]
        rows.append([goal.what, goal.where, _paper(goal), *own, as_printed, *mine, target, VERDICTS[reached]])
    head = ["", "where", "paper", "the paper's network, here", "network", "as good as in the paper",
            "ours", "network", "our target", "ours reaches it"]  # fmt: skip
    return markdown_table(head, rows)


def _as_good_as_printed(goal: Goal, found: Measured | None) -> bool | None:
    """Whether the paper's network is here what it is in the paper, as far as the figures are printed."""
    return None if found is None else goal._replace(target=goal.paper).reached(round(found.value, 2))


def _identical(entry: Record) -> bool:
    """Whether quarter turns change neither the accuracy nor a single prediction."""
    same = len(set(entry["quarters"]["accuracy"].values())) == 1
    return same and all(found["predictions_changed"] == 0 for found in entry["deviations"].values())


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
    text = markdown_table(["trained on upright digits only", *(f"{angle}°" for angle in angles), "any angle"], rows)
    text += "\nThe largest changes under rotations by 90, 180 and 270 degrees, in float32 (the paper: numerical errors "
    text += f"< {NUMERICAL_ERROR:g}):\n\n"
    text += _deviations(record)
    curve = next(iter(networks.values()))["curve"]
    caption = f"Accuracy over the angle of rotation, on {curve['test_images']:,} test digits."
    return text + "\n" + _picture("accuracy_by_angle", caption) + _trainings(networks.values())


def _deviations(record: Record | None) -> str:
    parts = [_present((record or {}).get(part, {})) for part in ("networks", "trained_turned")]
    rows = [
        [f"`{entry['run']}`", f"{found['images']:,} {DIGITS[kind]}",
         f"{found['predictions_changed']:,} of {3 * found['images']:,}",
         *(f"{found[part]:.1e}" for part in ("scores", "activations", "poses")), f"{found['poses_defined']:.0f} %"]
        for part in parts
        for entry in part.values()
        for kind, found in entry["deviations"].items()
    ]  # fmt: skip
    head = ["training", "digits", "predictions changed", "scores", "agreements", "poses", "poses defined"]
    return markdown_table(head, rows)


def _accuracy(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    rows = []
    for name, cells in record["cells"].items():
        goals = [GOALS[f"{column}/{name}"] for column in COLUMNS]
        if any(goal.paper is not None for goal in goals):
            rows.append([f"paper: {goals[0].where.split(', ')[1]}", "the paper's", *map(_paper, goals)])
        found = [cells[column] and Measured(cells[column]["accuracy"], cells[column]) for column in COLUMNS]
        ours = [_value(goal, value) for goal, value in zip(goals, found, strict=True)]
        rows.append([LABELS[name], _network(next(filter(None, found), None)), *ours])
    text = markdown_table(["", "network", *COLUMNS.values()], rows)
    return text + _trainings(cells[column] for column in COLUMNS for cells in record["cells"].values() if cells[column])


def _short(record: Record | None) -> str:
    entries = (record or {}).get("short", dict.fromkeys(table1a.SHORT))
    rows = [[f"`{name}`", *_cost(entry), *_accuracies(entry), _pose(entry)] for name, entry in entries.items()]
    head = ["", "views seen", "CPU-minutes", "accuracy", "by agreement", "pose error, mean / median"]
    return "MNIST rotated on the fly, few views and few CPU-minutes:\n\n" + markdown_table(head, rows)


def _papers_network(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    head = ["training", "views seen", "CPU-minutes", "accuracy", "by agreement", "pose error, mean / median"]
    names = {name: entry for name, entry in record["trainings"].items() if name.startswith("rotated-paper")}
    names["rotated-paper, bicubic test digits"] = record["bicubic"]
    rows = [[f"`{name}`", *_cost(entry), *_accuracies(entry), _pose(entry)] for name, entry in names.items()]
    text = "On MNIST rotated on the fly; [how it was trained](reproduction.md).\n\n" + markdown_table(head, rows)
    text += f"\n{_repetitions(record)}\n"
    changes = {"networks": {name: record[name] for name in ("upright", "rotated")}}
    if _present(changes["networks"]):
        text += (
            f"\nThe largest changes under rotations by 90, 180 and 270 degrees, in float32:\n\n{_deviations(changes)}"
        )
    if record["pictures"]:
        captions = PICTURES | {"pose_error_by_class": "Figure 5: pose errors for each class."}
        text += "\n" + "\n".join(_picture(f"{paper.PREFIX}{name}", caption) for name, caption in captions.items())
        text += f"\nDrawn with the weights of `{record['pictures']['run']}`.\n"
    return text + _trainings(_present(record["trainings"]).values())


def _pose_error(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    rows = [
        [POSE_LABELS[name], _paper(GOALS[f"pose/{name}"]), *_mean_median(entry)]
        for name, entry in record["rows"].items()
    ]
    text = (
        "Degrees between the pose of a rotated test digit and the rotated pose of the upright one, for the true class."
    )
    text += "\n\n" + markdown_table(["", "paper, mean", "mean", "median"], rows)
    caption = (
        f"Figure 5: the fraction of test digits in each bin of {table1b.BIN} degrees of pose error, for each class."
    )
    text += "\n" + _picture("pose_error_by_class", caption)
    entries = _present(record["rows"]).values()
    return text + _trainings(entry for entry in entries if "run" in entry)


def _figures(record: Record | None) -> str:
    if record is None:
        return f"{MISSING}\n"
    drawn = [_picture(name, caption) for name, caption in PICTURES.items() if name in record["pictures"]]
    return "\n".join([*drawn, f"Drawn with the weights of `{record['run']}`.\n"])


def _trainings(entries: Iterable[Record]) -> str:
    """What every figure above comes from, folded away."""
    rows = [
        [f"`{entry['run']}`", f"{entry['trained_on']}; {entry['training_images']:,} images", _views(entry),
         PROTOCOLS[TRAININGS[entry["run"]].protocol].tested_on, f"{entry['test_images']:,}", *_cost(entry),
         *_accuracies(entry), str(entry["seed"]), str(entry["commit"]), str(entry["measured_with"])]
        for entry in entries
    ]  # fmt: skip
    if not rows:
        return ""
    head = ["training", "trained on", "views", "tested on", "test images", "views seen", "CPU-minutes", "accuracy",
            "by agreement", "seed", "trained by commit", "measured by commit"]  # fmt: skip
    return "\n<details><summary>Trainings</summary>\n\n" + markdown_table(head, rows) + "\n</details>\n"


def _views(entry: Record) -> str:
    """How the views of a training differ from its images; old records say only that this is as in their protocol."""
    text = entry.get("augmentation", "")
    if "Augmentation" not in text:
        text = describe_augmentation(PROTOCOLS[TRAININGS[entry["run"]].protocol].augmentation)
    resampled = "interpolation='mixed'" in text
    kinds = ["rotated"] if "rotation=180.0" in text else []
    kinds += ["translated"] if "placement='frame'" in text else []
    kinds += ["two interpolations, shifts of half a pixel"] if resampled else []
    return ", ".join(kinds) or "as they are"


def _network(found: Measured | None) -> str:
    if found is None:
        return ""
    if "preset" not in found.entry:
        return "none"
    preset = found.entry["preset"]
    return f"`{preset}`, {_parameters(preset) / 1000:.0f}k parameters"


@cache
def _parameters(preset: str) -> int:
    """Without the decoder, which no prediction needs; the size of the images makes no difference."""
    return Architecture(preset).build(seed=0).parameter_counts()[0]


def _cost(entry: Record | None) -> list[str]:
    return [MISSING, ""] if entry is None else [f"{entry['images_seen']:,}", f"{entry['cpu_minutes']:.1f}"]


def _accuracies(entry: Record | None) -> list[str]:
    """By scores and by agreements; agreements that no loss was applied to mean nothing and are left out."""
    if entry is None:
        return ["", ""]
    trained = entry["config"]["objective"]["spread"] > 0
    return [_number(entry["accuracy"]), _number(entry["agreement_accuracy"]) if trained else ""]


def _pose(entry: Record | None) -> str:
    if entry is None:
        return ""
    undefined = f" ({entry['pose_undefined']:.0f} % undefined)" if entry.get("pose_undefined") else ""
    return f"{entry['pose_error_mean']:.2f} / {entry['pose_error_median']:.2f}°{undefined}"


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


def _value(goal: Goal, found: Measured | None) -> str:
    if found is None:
        return MISSING
    return _number(found.value, goal.unit) + (f" ± {found.spread:.2f}" if found.spread is not None else "")


def _number(value: float, unit: str = "%") -> str:
    return f"{value:.2f} %" if unit == "%" else f"{value:.2f}°"
