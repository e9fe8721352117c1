"""A walk-through on real data: radio galaxies, with the networks tested at every angle.

Everything is chosen on the validation split; the test split is used once, after all networks are trained.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import Dataset, load_galaxies
from equicaps.data.galaxies import SHA256
from equicaps.images import Augmentation, rotate
from equicaps.inference import load_image_model
from equicaps.inference.model_files import MODEL
from equicaps.losses import Objective
from equicaps.metrics import balanced_accuracy, exactness, wilson_interval
from equicaps.models import Architecture, CapsOutput, GroupCapsNet
from equicaps.training import AnyAngle, Budget, Intervals, TrainConfig
from equicaps.training.log import RESULT
from reproduction.galaxy_poses import as_digits, compare_with_moments
from reproduction.results import Record, Results, check_settings, finish_training, provenance_of

NAME = "galaxies"


@dataclass(frozen=True)
class Training:
    """One network on one preparation of the training split.

    Attributes:
        preset: which network.
        rotated: whether the images are rotated by random angles in training.
        steps: the number of steps of ``batch`` views.
        batch: the number of views in a step; two of each image where poses are compared.
        seed: of weights, order and angles.
        crop: the side of the central part of a cutout that is used.
        size: the side to which that part is scaled.
    """

    preset: str = "steerable"
    rotated: bool = True
    steps: int = 140
    batch: int = 64
    seed: int = 0
    crop: int = 64
    size: int = 32

    @property
    def name(self) -> str:
        """A name for its folder."""
        views = "rotated" if self.rotated else "unrotated"
        return f"{self.preset}-{views}-{self.crop}-to-{self.size}-seed-{self.seed}"

    def folder(self, results: Results) -> Path:
        """Where it keeps its checkpoints and weights, which are not part of the repository."""
        return results.unfinished(NAME) / self.name

    def config(self) -> TrainConfig:
        """All settings; a network without poses has no agreements to train and no poses to compare."""
        poses = self.preset == "steerable"
        return TrainConfig(
            Budget(steps=self.steps),
            Architecture(self.preset, num_classes=4, image_size=self.size),
            objective=Objective(consistency=0.3 if poses and self.rotated else 0.0, spread=0.3 if poses else 0.0),
            batch=self.batch,
            views=2 if poses and self.rotated else 1,
            seed=self.seed,
            intervals=Intervals(evaluations=1, checkpoint_seconds=60.0),
        )

    def data(self, split: Literal["train", "valid", "test"], root: Path | None) -> Dataset:
        """A split as this network sees it; in training all classes are equally frequent, as they are in the others."""
        found = load_galaxies(split, root, crop=self.crop, size=self.size)
        return found.balanced() if split == "train" else found


TRIALS = {
    "96 pixels to 48x48": Training(steps=125, crop=96, size=48, batch=32),
    "64 pixels to 32x32": Training(),
}
"""Preparations that were compared on the validation split, for about the same CPU time."""

SEEDS = range(3)
METHODS = {
    "steerable": [Training(seed=seed) for seed in SEEDS],
    "cnn_turned": [Training("steerable_cnn", seed=seed) for seed in SEEDS],
    "cnn": [Training("steerable_cnn", rotated=False, seed=seed) for seed in SEEDS],
    "paper_cnn_turned": [Training("plain_cnn")],
    "paper_cnn": [Training("plain_cnn", rotated=False)],
}
"""What is compared, with one training for each seed."""


def train_all(results: Results, root: Path | None) -> None:
    """Train everything that is missing: every method with one seed before any with two."""
    by_seed = sorted((training for method in METHODS.values() for training in method), key=lambda each: each.seed)
    for training in (*TRIALS.values(), *by_seed):
        _record(training, results, root)


def measure(results: Results, root: Path | None) -> Record:
    """Test every network on the test split and write ``galaxies.json``."""
    valid, test = Training().data("valid", root), Training().data("test", root)
    runs = []
    for method, trainings in METHODS.items():
        for training in trainings:
            model = load_image_model(training.folder(results))
            run = {
                **_described(training, _record(training, results, root)),
                "method": method,
                "parameters": model.network.parameter_counts()[0],
                "test": answers(model.network, test.images[:]),
            }
            poses = {"axes": compare_with_moments(model.predict, valid, test)} if method == "steerable" else {}
            runs.append(run | poses)
    by_method = {method: [run for run in runs if run["method"] == method] for method in METHODS}
    return results.write(NAME, {
        "data": {"name": test.name, "sha256": SHA256, "images": len(test), "classes": list(test.classes),
                 "labels": as_digits(test.labels), "preparation": test.note},
        "trials": [{"trial": name, **_described(training, _record(training, results, root))}
                   for name, training in TRIALS.items()],
        "runs": runs,
        "rows": {method: summary(by_method[method], by_method["steerable"], test.labels) for method in METHODS},
    })  # fmt: skip


@torch.no_grad()
def answers(network: GroupCapsNet, images: Float[Tensor, "n 1 side side"]) -> Record:
    """The predicted classes, one digit each: unrotated, at seeded random angles, and after each quarter turn."""
    seeded = torch.Generator().manual_seed(0)
    rotated = rotate(images, 360 * torch.rand(len(images), generator=seeded))
    quarters = [torch.rot90(images, count, (-2, -1)) for count in (1, 2, 3)]
    return {
        "as_they_are": _predict(network, images),
        "any_angle": _predict(network, rotated),
        "quarters": [_predict(network, part) for part in quarters],
        "exactness": exactness(network, torch.cat((images, rotated)))._asdict(),
    }


def summary(runs: Sequence[Record], reference: Sequence[Record], labels: Int[Tensor, " n"]) -> Record:
    """A row of the table: the mean over seeds, all tested on the same images.

    Intervals are Wilson's, for the mean over the seeds. A difference from the reference is paired: for each image the
    fraction of seeds that are correct is compared, and the mean over the images has 1.96 standard errors.
    """
    first, count = runs[0], len(labels) * len(runs)
    row: Record = {
        "preset": first["config"]["model"]["preset"],
        "rotated": first["settings"]["rotated"],
        "seeds": len(runs),
        "parameters": first["parameters"],
        "images_seen": first["images_seen"],
        "cpu_minutes": sum(run["cpu_minutes"] for run in runs),
        "quarter_turns_changed": sum(_changed(run, rotated) for run in runs for rotated in run["test"]["quarters"]),
        "quarter_turns": 3 * count,
        "any_angle_changed": 100 * sum(_changed(run, run["test"]["any_angle"]) for run in runs) / count,
    }
    for view in ("as_they_are", "any_angle"):
        correct, expected = _correct(runs, view, labels), _correct(reference, view, labels)
        difference = correct.mean(0) - expected.mean(0)
        predicted = [_from_digits(run["test"][view]) for run in runs]
        row[view] = {
            "accuracy": 100 * correct.mean().item(),
            "interval": wilson_interval(correct.mean(0).sum().item(), len(labels)),
            "by_seed": (100 * correct.mean(1)).tolist(),
            "balanced_accuracy": sum(balanced_accuracy(found, labels) for found in predicted) / len(runs),
            "by_class": [100 * correct[:, labels == label].mean().item() for label in labels.unique()],
            "less_than_reference": 100 * difference.mean().item(),
            "plus_minus": 196 * (difference.std() / len(labels) ** 0.5).item(),
        }
    return row


def _record(training: Training, results: Results, root: Path | None) -> Record:
    """The record of a training, which is trained or continued unless it is finished."""
    folder, config = training.folder(results), training.config()
    if (folder / MODEL).exists():
        record: Record = json.loads((folder / RESULT).read_text())
        check_settings(folder, record, config)
        return record
    return finish_training(
        config,
        training.data("train", root),
        Augmentation(training.size, rotation=180.0 if training.rotated else 0.0),
        AnyAngle(training.data("valid", root), training.size),
        folder,
        results.console,
    )


def _described(training: Training, record: Record) -> Record:
    return {
        "run": training.name,
        "settings": asdict(training),
        **provenance_of(record),
        "valid_accuracy_any_angle": record["figures"]["accuracy"],
    }


def _predict(network: Callable[[Tensor], CapsOutput], images: Tensor) -> str:
    return as_digits(torch.cat([network(part).scores.argmax(-1) for part in images.split(100)]))


def _from_digits(digits: str) -> Int[Tensor, " n"]:
    return torch.tensor([int(digit) for digit in digits])


def _changed(run: Record, answers: str) -> int:
    return sum(before != after for before, after in zip(run["test"]["as_they_are"], answers, strict=True))


def _correct(runs: Sequence[Record], view: str, labels: Tensor) -> Float[Tensor, "seeds n"]:
    return torch.stack([(_from_digits(run["test"][view]) == labels).double() for run in runs])
