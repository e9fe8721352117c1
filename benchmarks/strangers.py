"""`equicaps train` with nothing but a folder, beside a plain CNN with the same parameters, views and CPU-minutes.

Run: python benchmarks/strangers.py [--sets coins paper] [--seeds 3] [--json results/strangers.json]. For each set (see
stranger_sets.py; needs EQUICAPS_DATA) and seed there are three rows:

- `equicaps`: the command `equicaps train FOLDER --seed S`, which decides everything else;
- `CNN`: six convolutions with batch norm and about as many parameters, trained on rotated views of the same training
  images, at the same size, for as many CPU-minutes; its learning rate is the best of four on the validation images,
  each at eight angles, in trainings of a third of that time with the first seed;
- `CNN, 8 views`: the same network, whose scores are averaged over eight rotations of each test image.

The test images are rotated by random angles, seeded by the seed of the row, and looked at once by each network; the
file lists every look. The columns are the accuracy and the mean of the accuracies of all classes, in percent with 95 %
intervals over images, the predictions that a quarter turn changes (three of each image), and for equicaps the share of
angles that are within their stated error when an image is rotated and, where the test images are upright, the error of
the angles. Rows that are in the file already are not measured again.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from stranger_sets import SETS, write_set
from torch import Tensor, nn

from equicaps.data import Dataset
from equicaps.images import Augmentation, angle_distance, rotate
from equicaps.inference import PoseModel, load_image_model
from equicaps.inference.angle_error import coverage
from equicaps.losses import Objective
from equicaps.metrics import balanced_accuracy, wilson_interval
from equicaps.models.output import CapsOutput, identity_poses
from equicaps.training import Budget, Optimiser, TrainConfig, train
from equicaps.training.checkpoint import saved_config
from equicaps.training.log import provenance
from equicaps.training.setup import Setup, set_up

RATES, TRIAL = (3e-4, 1e-3, 3e-3, 1e-2), 1 / 3
BATCH = 250
VALIDATION_VIEWS = 8
RESAMPLES = 1000
"""For the interval of the mean over classes."""
UPRIGHT = ("paper",)
"""Sets whose test images are upright, so that their angles are known."""


class CNN(nn.Module):
    """Six convolutions with batch norm in three resolutions."""

    def __init__(self, channels: int, classes: int, width: int) -> None:
        super().__init__()
        widths = (channels, width, width, 2 * width, 2 * width, 3 * width, 3 * width)
        layers: list[nn.Module] = []
        for number in range(6):
            layers += [nn.Conv2d(*widths[number : number + 2], 3, padding=1, bias=False)]
            layers += [nn.BatchNorm2d(widths[number + 1]), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if number in (1, 3) else []
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], classes))
        self.classes = classes

    def forward(self, images: Tensor) -> CapsOutput:
        scores = self.layers(images)
        poses = identity_poses(images, self.classes, 1, 1).flatten(1, 3)
        return CapsOutput(scores, torch.ones_like(scores), poses)


def parameters(network: nn.Module) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


def like(setup: Setup, seed: int) -> CNN:
    """The CNN whose number of parameters is nearest to that of the network of a training."""
    model, wanted = setup.config.model, parameters(setup.network)
    torch.manual_seed(seed)
    widths = range(8, 64)
    width = min(widths, key=lambda width: abs(parameters(CNN(model.in_channels, model.num_classes, width)) - wanted))
    return CNN(model.in_channels, model.num_classes, width)


@dataclass(frozen=True)
class Test:
    """The test images of a set, rotated by seeded random angles, at the size that the networks take."""

    images: Tensor
    labels: Tensor
    degrees: Tensor

    @classmethod
    def of(cls, data: Dataset, size: int, *, seed: int = 0, views: int = 1) -> "Test":
        degrees = 360 * torch.rand(views, len(data), generator=torch.Generator().manual_seed(seed))
        rotated = [
            rotate(images, angles, size)
            for of_view in degrees
            for images, angles in zip(data.images.split(BATCH), of_view.split(BATCH), strict=True)
        ]
        return cls(torch.cat(rotated), data.labels.repeat(views), degrees.flatten())

    def figures(self, network: nn.Module, views: int = 1) -> dict[str, Any]:
        """Accuracies with intervals, and how many predictions quarter turns change."""
        answers = predictions(network, self.images, views)
        changed = sum(
            int((predictions(network, torch.rot90(self.images, turns, (-2, -1)), views) != answers).sum())
            for turns in (1, 2, 3)
        )
        right = int((answers == self.labels).sum())
        return {
            "accuracy": 100 * right / len(answers),
            "accuracy_interval": wilson_interval(right, len(answers)),
            "balanced_accuracy": balanced_accuracy(answers, self.labels),
            "balanced_accuracy_interval": balanced_interval(answers, self.labels),
            "changed_by_quarter_turns": changed,
            "test_images": len(answers),
        }

    def angle_error(self, model: PoseModel) -> dict[str, float]:
        """How far predicted angles are from those by which upright images were rotated, where the class is right."""
        found = model.predict(self.images)
        error = angle_distance(found.angles, self.degrees, found.period)
        known = (found.labels == self.labels) & ~error.isnan()
        return {"angle_error_median": error[known].median().item(), "angles_known": int(known.sum())}


def balanced_interval(answers: Tensor, labels: Tensor) -> tuple[float, float]:
    """The 95 % interval of the mean over classes, from images drawn again with replacement, class by class."""
    generator = torch.Generator().manual_seed(0)
    right = (answers == labels).double()
    means = []
    for label in labels.unique():
        own = right[labels == label]
        means.append(own[torch.randint(len(own), (RESAMPLES, len(own)), generator=generator)].mean(1))
    low, high = (100 * torch.stack(means).mean(0)).quantile(torch.tensor([0.025, 0.975], dtype=torch.float64)).tolist()
    return low, high


@torch.no_grad()
def predictions(network: nn.Module, images: Tensor, views: int) -> Tensor:
    """The predicted classes; with several views, of the mean probability over as many rotations."""
    network.eval()
    found = []
    for part in images.split(BATCH):
        turned = [rotate(part, torch.full((len(part),), 360.0 * k / views)) for k in range(views)]
        found.append(sum(torch.softmax(network(view).scores, -1) for view in turned).argmax(-1))
    return torch.cat(found)


def ours(data: Path, seed: int, out: Path) -> None:
    """The command, with nothing but a folder and a seed."""
    command = [sys.executable, "-m", "equicaps.cli.main", "train", str(data), "--seed", str(seed), "--out", str(out)]
    command += ["--resume"] if out.exists() else []
    subprocess.run(command, check=True)


def rival(setup: Setup, seed: int, rate: float, minutes: float, out: Path) -> tuple[nn.Module, float]:
    """A CNN trained for so many CPU-minutes, and its last accuracy on the validation images."""
    model = setup.config.model
    config = TrainConfig(
        Budget(minutes=minutes),
        model,
        Optimiser(rate=rate),
        Objective(consistency=0.0, spread=0.0),
        views=1,
        seed=seed,
    )
    network = like(setup, seed)
    augmentation = Augmentation(model.image_size, rotation=180.0)
    train(config, setup.data, augmentation, folder=out, network=network, resume=True)
    watched = setup.validation or setup.data.some(500)
    check = Test.of(watched, model.image_size, views=VALIDATION_VIEWS)
    return network, check.figures(network)["balanced_accuracy"]


def measure(name: str, seed: int, folder: Path, rows: dict[str, Any], looks: list[dict[str, Any]]) -> None:
    """Add the rows of one set and seed, and the look at its test images."""
    data = write_set(name, folder / "sets")
    out = folder / "runs" / name / f"equicaps-{seed}"
    ours(data, seed, out)
    result = json.loads((out / "result.json").read_text())
    config = saved_config(out)
    assert config is not None
    setup = set_up(str(data), replace(config, budget=Budget(steps=1)), balance=False)
    minutes = result["cpu_seconds"] / 60
    size = config.model.image_size
    held_out = setup.evaluation.test.data if hasattr(setup.evaluation, "test") else setup.evaluation.data
    test, model = Test.of(held_out, size, seed=seed), load_image_model(out)
    row = {"set": name, "seed": seed, "size": size, "training_images": setup.data.different, "cpu_minutes": minutes}
    row["commit"] = provenance()["commit"]
    now = datetime.now(UTC).isoformat(timespec="seconds")
    looks.append({"when": now, "commit": row["commit"], "set": name, "seed": seed})
    rows[f"{name}, equicaps, {seed}"] = {
        **row, "network": "equicaps", "parameters": parameters(model.network), **test.figures(model.network),
        **(coverage(model, held_out) or {}), **(test.angle_error(model) if name in UPRIGHT else {}),
    }  # fmt: skip
    tried = rows.setdefault(f"{name}, rates", {})
    for rate in RATES:
        if str(rate) not in tried:  # with the first seed only
            out = folder / "runs" / name / f"cnn-trial-{rate}"
            tried[str(rate)] = rival(setup, seed, rate, TRIAL * minutes, out)[1]
    best = float(max(tried, key=lambda rate: tried[rate]))
    network, _ = rival(setup, seed, best, minutes, folder / "runs" / name / f"cnn-{seed}-{best}")
    for kind, views in (("CNN", 1), ("CNN, 8 views", 8)):
        shared = {**row, "network": kind, "parameters": parameters(network), "rate": best}
        rows[f"{name}, {kind}, {seed}"] = {**shared, **test.figures(network, views)}


def show(rows: dict[str, Any]) -> None:
    """Print the means over seeds."""
    found = [row for row in rows.values() if "network" in row]
    print(f"{'set':<10}{'network':<14}{'seeds':>6}{'accuracy':>10}{'balanced':>10}{'changed':>9}{'CPU-min':>9}")
    for name in dict.fromkeys(row["set"] for row in found):
        for kind in ("equicaps", "CNN", "CNN, 8 views"):
            own = [row for row in found if (row["set"], row["network"]) == (name, kind)]
            if own:
                accuracy, balanced, minutes = (
                    statistics.mean(row[key] for row in own) for key in ("accuracy", "balanced_accuracy", "cpu_minutes")
                )
                changed = sum(row["changed_by_quarter_turns"] for row in own)
                print(f"{name:<10}{kind:<14}{len(own):>6}{accuracy:>9.1f}%{balanced:>9.1f}%{changed:>9}{minutes:>9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="read finished rows from this file, and write all rows to it")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("runs/strangers"), help="where sets and trainings are kept")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    path = arguments.json
    content = json.loads(path.read_text()) if path and path.exists() else {**provenance(), "rows": {}}
    looks = content.setdefault("looks", [])
    for seed in range(arguments.seeds):
        for name in arguments.sets:
            if f"{name}, CNN, 8 views, {seed}" in content["rows"]:
                continue
            started = time.process_time()
            measure(name, seed, arguments.folder, content["rows"], looks)
            print(f"{name}, seed {seed}: {math.ceil(time.process_time() - started)} CPU-seconds beside the command")
            if path:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(content, indent=1) + "\n")
    show(content["rows"])


if __name__ == "__main__":
    main()
