"""The walk-through on real data: radio galaxies, trained, tested at every angle, and the axes of the sources.

Everything is chosen on the validation split; the test split is looked at once, when all is trained.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps._files import prepare_folder, write_bytes
from equicaps.data import Dataset, load_galaxies
from equicaps.data.galaxies import SHA256
from equicaps.images import Augmentation, angle_difference, centroid, principal_axis, rotate
from equicaps.inference import Prediction, load
from equicaps.inference.model_files import MODEL
from equicaps.losses import Objective
from equicaps.metrics import balanced_accuracy, exactness, pose_errors, wilson_interval
from equicaps.models import Architecture, CapsOutput, GroupCapsNet
from equicaps.training import AnyAngle, Budget, Progress, TrainConfig, train
from equicaps.training.config import Intervals
from equicaps.training.log import RESULT, provenance
from reproduction.session import Record
from reproduction.trainings import check_settings

NAME = "galaxies"
WORKSHOP = Path("unfinished") / NAME
"""Below the folder of results: checkpoints and weights, which are not kept in the repository."""
ROUND = 0.8
"""Minor over major axis from which on a source counts as round: it has no axis to compare with."""
CENTRED = 0.5
"""Pixels up to which the centre of light counts as in the middle: it has no direction to compare with."""
PERIODS = {"axis": 180, "centroid": 360}
"""An axis has no head, a direction has."""
CURVE = [7.5 * step for step in range(13)]
"""Degrees."""
ANGLE_SEED = 0

Watch = Callable[[Progress], None]
Predict = Callable[[Tensor], Prediction]


@dataclass(frozen=True)
class Training:
    """One network on one preparation of the training split.

    Attributes:
        preset: which network.
        turned: whether it sees the images at random angles, or as they are.
        steps: of ``batch`` views.
        batch: views in a step; where poses are compared, two of each image.
        seed: of weights, order and angles.
        crop: side of the middle part of a cutout.
        size: side of the images.
    """

    preset: str = "steerable"
    turned: bool = True
    steps: int = 140
    batch: int = 64
    seed: int = 0
    crop: int = 64
    size: int = 32

    @property
    def folder(self) -> str:
        """Where it trains, below the workshop."""
        views = "turned" if self.turned else "still"
        return f"{self.preset}-{views}-{self.crop}-to-{self.size}-seed-{self.seed}"

    def config(self) -> TrainConfig:
        """Settings of the training; a network without poses has no agreements to train and none to compare."""
        poses = self.preset == "steerable"
        return TrainConfig(
            Budget(steps=self.steps),
            Architecture(self.preset, num_classes=4, image_size=self.size),
            objective=Objective(consistency=0.3 if poses and self.turned else 0.0, spread=0.3 if poses else 0.0),
            batch=self.batch,
            views=2 if poses and self.turned else 1,
            seed=self.seed,
            intervals=Intervals(evaluations=1, checkpoint_seconds=60.0),
        )

    def data(self, split: str, root: Path | None) -> Dataset:
        """A split as this network sees it; in training, classes are equally frequent, as in the other splits."""
        found = load_galaxies(split, root, crop=self.crop, size=self.size)  # type: ignore[arg-type] # a known split
        return found.balanced() if split == "train" else found


TRIALS = {
    "96 pixels to 48x48": Training(steps=125, crop=96, size=48, batch=32),
    "64 pixels to 32x32": Training(),
}
"""Preparations that were tried, for about as many CPU-seconds each, to choose by validation."""

SEEDS = 3
METHODS = {
    "steerable": [Training(seed=seed) for seed in range(SEEDS)],
    "cnn_turned": [Training("steerable_cnn", seed=seed) for seed in range(SEEDS)],
    "cnn": [Training("steerable_cnn", turned=False, seed=seed) for seed in range(SEEDS)],
    "paper_cnn_turned": [Training("plain_cnn")],
    "paper_cnn": [Training("plain_cnn", turned=False)],
}
"""What is compared, each with its seeds."""


def trained(training: Training, results: Path, root: Path | None, watch: Watch | None = None) -> Record:
    """The record of a training, from its folder if it is finished, otherwise trained (or resumed) now."""
    folder = results / WORKSHOP / training.folder
    config = training.config()
    if (folder / MODEL).exists():
        record: Record = json.loads((folder / RESULT).read_text())
        check_settings(folder, record, config)
        return record
    result = train(
        config,
        training.data("train", root),
        Augmentation(training.size, rotation=180.0 if training.turned else 0.0),
        folder=folder,
        evaluation=AnyAngle(training.data("valid", root), training.size),
        resume=True,
        watch=watch,
    )
    if not result.finished:
        raise KeyboardInterrupt
    return json.loads((folder / RESULT).read_text())


def measure(results: Path, root: Path | None) -> Record:
    """Test every training on the test split and write ``galaxies.json``."""
    valid, test = Training().data("valid", root), Training().data("test", root)
    runs = []
    for method, trainings in METHODS.items():
        for training in trainings:
            model = load(results / WORKSHOP / training.folder)
            runs.append(
                {**described(training, trained(training, results, root)), "method": method,
                 "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
                 "test": answers(model.network, test.images),
                 **({"axes": axes(model.predict, valid, test)} if method == "steerable" else {})}
            )  # fmt: skip
    by_method = {method: [run for run in runs if run["method"] == method] for method in METHODS}
    record = {
        "experiment": NAME,
        "data": {"name": test.name, "sha256": SHA256, "images": len(test), "classes": list(test.classes),
                 "labels": _digits(test.labels), "preparation": test.note},
        "trials": [{"trial": name, **described(training, trained(training, results, root))}
                   for name, training in TRIALS.items()],
        "runs": runs,
        "rows": {method: summary(by_method[method], by_method["steerable"], test.labels) for method in METHODS},
        "measured_with": provenance(),
    }  # fmt: skip
    prepare_folder(results)
    write_bytes(results / f"{NAME}.json", (json.dumps(record, indent=1, allow_nan=False) + "\n").encode())
    return record


def described(training: Training, record: Record) -> Record:
    """A training with everything that its figures come from."""
    return {
        "run": training.folder,
        "settings": asdict(training),
        "seed": record["config"]["seed"],
        "config": record["config"],
        "commit": record["commit"],
        "trained_on": record["data"]["name"],
        "training_images": record["data"]["images"],
        "images_seen": record["images_seen"],
        "cpu_minutes": record["cpu_seconds"] / 60,
        "valid_accuracy_any_angle": record["figures"]["accuracy"],
    }


@torch.no_grad()
def answers(network: GroupCapsNet, images: Float[Tensor, "n 1 side side"]) -> Record:
    """Predicted classes, a digit each, as they are, at seeded angles, and after 90, 180 and 270 degrees."""
    seeded = torch.Generator().manual_seed(ANGLE_SEED)
    turned = rotate(images, 360 * torch.rand(len(images), generator=seeded))
    quarters = [torch.rot90(images, count, (-2, -1)) for count in (1, 2, 3)]
    return {
        "as_they_are": _answers(network, images),
        "any_angle": _answers(network, turned),
        "quarters": [_answers(network, part) for part in quarters],
        "exactness": exactness(network, torch.cat((images, turned)))._asdict(),
    }


def summary(runs: Sequence[Record], reference: Sequence[Record], labels: Int[Tensor, " n"]) -> Record:
    """A row of the table: over seeds, tested on the same images.

    Intervals are Wilson's for the mean over the seeds on so many images. A difference to the reference is paired: over
    the images, of the share of seeds that are right, with 1.96 standard errors.
    """
    first = runs[0]
    row: Record = {
        "preset": first["config"]["model"]["preset"],
        "turned": first["settings"]["turned"],
        "seeds": len(runs),
        "parameters": first["parameters"],
        "images_seen": first["images_seen"],
        "cpu_minutes": sum(run["cpu_minutes"] for run in runs),
        "quarter_turns_changed": sum(_changed(run, turned) for run in runs for turned in run["test"]["quarters"]),
        "quarter_turns": 3 * len(labels) * len(runs),
        "any_angle_changed": 100
        * sum(_changed(run, run["test"]["any_angle"]) for run in runs)
        / (len(labels) * len(runs)),
    }
    for view in ("as_they_are", "any_angle"):
        right, expected = _right(runs, view, labels), _right(reference, view, labels)
        apart = right.mean(0) - expected.mean(0)
        predicted = [_labels(run["test"][view]) for run in runs]
        row[view] = {
            "accuracy": 100 * right.mean().item(),
            "interval": wilson_interval(right.mean(0).sum().item(), len(labels)),
            "by_seed": (100 * right.mean(1)).tolist(),
            "balanced_accuracy": sum(balanced_accuracy(found, labels) for found in predicted) / len(runs),
            "by_class": [100 * right[:, labels == label].mean().item() for label in labels.unique()],
            "less_than_reference": 100 * apart.mean().item(),
            "plus_minus": 196 * (apart.std() / len(labels) ** 0.5).item(),
        }
    return row


@torch.no_grad()
def axes(predict: Predict, valid: Dataset, test: Dataset) -> Record:
    """Poses beside angles from moments, and how they turn with the image.

    One offset for each predicted class and kind of angle, fitted to the validation sources: a pose turns with the
    image, but nothing says from where it counts.
    """
    fitted, found = predict(valid.images), predict(test.images)
    references = {}
    for kind, period in PERIODS.items():
        (reference, known), (expected, chosen) = _reference(kind, valid.images), _reference(kind, test.images)
        known, chosen = known & fitted.angles.isfinite(), chosen & found.angles.isfinite()
        classes = len(test.classes)
        offsets = fit_offsets(fitted.labels, fitted.angles, reference, known, classes=classes, period=period)
        corrected = found.angles - torch.tensor(offsets)[found.labels]
        apart = angle_difference(corrected, expected, period)
        groups = {"all": chosen} | {name: chosen & (test.labels == k) for k, name in enumerate(test.classes)}
        references[kind] = {
            "offsets": offsets,
            "differences": {name: spread(apart[group]) for name, group in groups.items()},
            "control": spread(angle_difference(corrected[chosen], expected[chosen].roll(1), period)),
            "poses": [_number(value) for value in (corrected % 360).tolist()],
            "expected": [_number(value) for value in expected.where(chosen, torch.nan).tolist()],
        }
    elongated = _reference("axis", test.images)[1]
    return {**references, "predicted": _digits(found.labels), "curve": turning(predict, test, elongated, CURVE)}


def fit_offsets(
    labels: Int[Tensor, " n"],
    angles: Float[Tensor, " n"],
    reference: Float[Tensor, " n"],
    chosen: Bool[Tensor, " n"],
    *,
    classes: int,
    period: int,
) -> list[float]:
    """For each class the circular mean of angle minus reference among the chosen."""
    found = []
    for label in range(classes):
        apart = torch.deg2rad((angles - reference)[chosen & (labels == label)] * 360 / period)
        found.append(torch.rad2deg(torch.atan2(apart.sin().sum(), apart.cos().sum())).item() * period / 360)
    return found


def spread(differences: Float[Tensor, " n"]) -> Record | None:
    """The quartiles of the sizes of differences, None without any."""
    if not len(differences):
        return None
    quartiles = differences.abs().quantile(torch.tensor([0.25, 0.5, 0.75]).to(differences)).tolist()
    return {"sources": len(differences), "quartiles": quartiles}


def turning(predict: Predict, data: Dataset, elongated: Tensor, angles: Sequence[float]) -> list[Record]:
    """What turning all images by each angle does to answers, poses and axes."""
    still, before, each = predict(data.images), _reference("axis", data.images)[0], torch.arange(len(data))
    curve = []
    for degrees in angles:
        by = torch.full((len(data),), degrees)
        images = torch.rot90(data.images, 1, (-2, -1)) if degrees == 90 else rotate(data.images, by)
        turned = predict(images)
        poses = [found.output.poses[each, still.labels] for found in (still, turned)]
        errors = pose_errors(poses[0], poses[1], by)[elongated]
        moved = angle_difference(_reference("axis", images)[0], before + by, 180)[elongated].abs()
        curve.append(
            {"degrees": degrees, "predictions_changed": int((still.labels != turned.labels).sum()),
             "pose_error_median": errors.median().item(), "pose_error_mean": errors.mean().item(),
             "axis_error_median": moved.median().item()}
        )  # fmt: skip
    return curve


def _reference(kind: str, images: Float[Tensor, "n 1 side side"]) -> tuple[Tensor, Tensor]:
    """Angles from the moments of the intensities, whose square roots the images are, and where they mean something."""
    intensities = images[:, 0] ** 2
    if kind == "axis":
        axis = principal_axis(intensities)
        return axis.degrees, axis.roundness < ROUND
    light = centroid(intensities)
    return light.degrees, light.distance > CENTRED


def _answers(network: Callable[[Tensor], CapsOutput], images: Tensor) -> str:
    """A digit for each image."""
    return _digits(torch.cat([network(part).scores.argmax(-1) for part in images.split(100)]))


def _digits(labels: Int[Tensor, " n"]) -> str:
    return "".join(map(str, labels.tolist()))


def _labels(digits: str) -> Int[Tensor, " n"]:
    return torch.tensor([int(digit) for digit in digits])


def _changed(run: Record, answers: str) -> int:
    return sum(before != after for before, after in zip(run["test"]["as_they_are"], answers, strict=True))


def _right(runs: Sequence[Record], view: str, labels: Tensor) -> Float[Tensor, "seeds n"]:
    return torch.stack([(_labels(run["test"][view]) == labels).double() for run in runs])


def _number(value: float) -> float | None:
    """There is no NaN in JSON, and nobody needs more digits."""
    return round(value, 2) if value == value else None
