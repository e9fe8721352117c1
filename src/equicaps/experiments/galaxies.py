"""The walk-through on real data: radio galaxies trained, tested at every angle, and their axes measured.

Everything is chosen on the validation split; the test split is looked at once, after all trainings.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from equicaps.data import Augmentation, Dataset, load_galaxies
from equicaps.experiments.session import Record
from equicaps.losses import Objective
from equicaps.training import AnyAngle, Budget, MisuseError, Model, Progress, TrainConfig, train
from equicaps.training.checkpoint import MODEL
from equicaps.training.config import Intervals
from equicaps.training.record import RESULT

WORKSHOP = Path("unfinished") / "galaxies"
"""Below the folder of results: checkpoints and weights, which are not kept in the repository."""

Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Training:
    """One network on one preparation of the training split.

    Attributes:
        preset: which network.
        turned: whether it sees the images at random angles, or as they are.
        steps: of ``batch`` views.
        batch: views in a step; turned images come in two views each.
        seed: of weights, order and angles.
        crop: side of the middle part of a cutout.
        size: side of the images.
        balanced: repeat the images of the rarer classes until all classes are equally frequent.
        linear: intensities instead of their square roots.
    """

    preset: str = "steerable"
    turned: bool = True
    steps: int = 125
    batch: int = 32
    seed: int = 0
    crop: int = 96
    size: int = 48
    balanced: bool = True
    linear: bool = False

    def config(self) -> TrainConfig:
        """Settings of the training."""
        capsules = self.preset == "steerable"
        consistency = 0.3 if capsules and self.turned else 0.0
        return TrainConfig(
            Budget(steps=self.steps),
            Model(self.preset, num_classes=4, image_size=self.size, pad=not self.preset.startswith("steerable")),
            objective=Objective(consistency=consistency, spread=0.3 if capsules else 0.0),
            batch=self.batch,
            views=2 if self.turned else 1,
            seed=self.seed,
            intervals=Intervals(evaluations=1, checkpoint_seconds=60.0),
        )

    def data(self, split: str, root: Path | None = None) -> Dataset:
        """A split as this network sees it."""
        found = load_galaxies(split, root, crop=self.crop, size=self.size)  # type: ignore[arg-type] # a known split
        if self.linear:
            found = replace(found, images=found.images**2)
        return balanced(found) if self.balanced and split == "train" else found


TRIALS = {
    "96 pixels to 48x48": Training(),
    "64 pixels to 32x32": Training(crop=64, size=32, batch=64, steps=140),
    "96 to 48, linear intensities": Training(linear=True),
    "96 to 48, classes as they come": Training(balanced=False),
}
"""What was tried, for about as many CPU-seconds each, to choose by validation."""


def balanced(data: Dataset) -> Dataset:
    """Every class as often as the most frequent one, by repetition."""
    most = int(data.labels.bincount().max())
    chosen = []
    for label in range(len(data.classes)):
        places = (data.labels == label).nonzero().flatten()
        chosen += places.repeat(-(-most // max(1, len(places))))[:most].tolist()
    return replace(data.take(chosen), name=f"{data.name}, classes balanced by repetition")


def trained(name: str, training: Training, results: Path, root: Path | None, watch: Watch | None = None) -> Record:
    """The record of a training, from its folder if it is finished, otherwise trained (or resumed) now."""
    folder = results / WORKSHOP / name
    config = training.config()
    if (folder / MODEL).exists():
        record: Record = json.loads((folder / RESULT).read_text())
        before = TrainConfig.from_dict(record["config"]).recipe()
        if different := sorted(key for key, value in config.recipe().items() if before.get(key) != value):
            raise MisuseError(f"{folder} was trained with other settings ({', '.join(different)}): remove it.")
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
