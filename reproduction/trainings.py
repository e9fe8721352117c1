"""Every training behind the tables, by name."""

import json
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

from equicaps._files import write_bytes
from equicaps.errors import UsageError
from equicaps.inference.model_files import MODEL, load_model
from equicaps.losses import Objective
from equicaps.models import Architecture
from equicaps.training import Budget, Optimiser, Progress, TrainConfig, train
from equicaps.training.log import RESULT, provenance
from reproduction.protocols import PROTOCOLS, QUICK

RUNS_FOLDER = "runs"
QUICK_STEPS = 10
QUICK_IMAGES = 200
"""Give the zero angles."""


@dataclass(frozen=True)
class Run:
    """A preset on a protocol for a number of steps of 64 views, or for as many as fit into CPU-minutes."""

    protocol: str
    preset: str
    steps: int | None = None
    _: KW_ONLY
    minutes: float | None = None
    consistency: float = 0.3
    reconstruction: float = 0.0
    spread: float = 0.3
    rate: float = 6e-3
    clip: float | None = None

    def config(self, *, quick: bool = False) -> TrainConfig:
        """The training that this is."""
        protocol = PROTOCOLS[self.protocol]
        views = protocol.views
        # The paper's blocks need multiples of 32.
        pad = bool(protocol.size % 32) and not self.preset.startswith("steerable")
        return TrainConfig(
            Budget(steps=QUICK_STEPS) if quick else Budget(steps=self.steps, minutes=self.minutes),
            Architecture(self.preset, image_size=protocol.size, pad=pad, decoder=self.reconstruction > 0),
            Optimiser(rate=self.rate, clip=self.clip),
            Objective(
                spread=self.spread,
                consistency=self.consistency if views == 2 else 0.0,
                reconstruction=self.reconstruction,
            ),
            views=views,
        )


RUNS = {
    "rotated-steerable": Run("rotated", "steerable", 9000, reconstruction=2.0),
    "upright-steerable": Run("upright", "steerable", 3000, clip=1.0),
    "mnist_rot-steerable": Run("mnist_rot", "steerable", 3500),
    "affnist-steerable": Run("affnist", "steerable", 2000),
    "rotated-steerable-reconstruction": Run("rotated", "steerable", 1500, consistency=0.0, reconstruction=2.0),
    "rotated-steerable-labels_only": Run("rotated", "steerable", 1500, consistency=0.0),
    "rotated-steerable_capsules": Run("rotated", "steerable_capsules", 2500),
    "mnist_rot-steerable_capsules": Run("mnist_rot", "steerable_capsules", 2000),
    "affnist-steerable_capsules": Run("affnist", "steerable_capsules", 2000),
    "rotated-steerable_cnn": Run("rotated", "steerable_cnn", 1000, consistency=0.0, spread=0.0),
    "mnist_rot-steerable_cnn": Run("mnist_rot", "steerable_cnn", 800, consistency=0.0, spread=0.0),
    "affnist-steerable_cnn": Run("affnist", "steerable_cnn", 700, consistency=0.0, spread=0.0),
    "rotated-plain_cnn": Run("rotated", "plain_cnn", 2000, consistency=0.0, spread=0.0),
    "mnist_rot-plain_cnn": Run("mnist_rot", "plain_cnn", 1600, consistency=0.0, spread=0.0),
    "affnist-plain_cnn": Run("affnist", "plain_cnn", 1000, consistency=0.0, spread=0.0),
    "upright-plain_cnn": Run("upright", "plain_cnn", 1500, spread=0.0),
    "rotated-paper": Run("rotated", "paper", 800, spread=1.0, rate=3e-3),
    "rotated-capsules_only": Run("rotated", "capsules_only", 800, spread=1.0, rate=3e-3),
    "rotated-steerable-short": Run("rotated", "steerable", 800),
    "rotated-steerable-minutes": Run("rotated", "steerable", minutes=15.0),
}
"""Name -> training; roughly in order of importance."""


def execute(
    name: str, results: Path, *, quick: bool = False, watch: Callable[[Progress], None] | None = None
) -> dict[str, Any]:
    """The record of a training, from ``results/runs/NAME.json`` if it is there, otherwise trained (or resumed) now.

    While it trains, everything is in ``results/unfinished/NAME``; the weights end up beside the record. A record of
    other settings is refused.
    """
    folder, unfinished = results / RUNS_FOLDER, results / "unfinished" / name
    run = RUNS[name]
    config = run.config(quick=quick)
    if (folder / f"{name}.json").exists():
        record: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
        if record["quick"] or quick:
            return record  # labelled as such, and refused by whoever wants the other
        check_settings(folder / f"{name}.json", record, config)
        return record
    protocol = (QUICK if quick else PROTOCOLS)[run.protocol]
    if quick:
        config = replace(config, intervals=replace(config.intervals, evaluations=1, evaluation_images=QUICK_IMAGES))
    result = train(
        config, protocol.training(), protocol.augmentation, folder=unfinished, evaluation=protocol.test(),
        resume=True, watch=watch,
    )  # fmt: skip
    if not result.finished:
        raise KeyboardInterrupt(
            f"{name} stopped after {result.step:,} steps, the last one finished and saved: the same command continues."
        )
    record = json.loads((unfinished / RESULT).read_text()) | {"run": name, "protocol": run.protocol, "quick": quick}
    folder.mkdir(parents=True, exist_ok=True)
    (unfinished / MODEL).replace(folder / f"{name}.safetensors")
    write_bytes(folder / f"{name}.json", (json.dumps(record, indent=1) + "\n").encode())
    return record


def measure_again(name: str, results: Path) -> dict[str, Any]:
    """The record of a finished training, its figures measured by the code as it is now, written in place of the old.

    For a change after which the same weights answer otherwise; the record then names both commits.
    """
    path = results / RUNS_FOLDER / f"{name}.json"
    if not path.exists():
        raise UsageError(f"{path} is not there: {name} has to be trained before it can be measured again.")
    record: dict[str, Any] = json.loads(path.read_text())
    network = load_model(path.with_suffix(".safetensors")).network
    figures = (QUICK if record["quick"] else PROTOCOLS)[record["protocol"]].test()(network, None)
    record |= {"figures": record["figures"] | dict(figures), "measured_with": provenance()}
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())
    return record


def check_settings(path: Path, record: dict[str, Any], config: TrainConfig) -> None:
    """Raise unless the record at ``path`` is of a training with these settings."""
    before = TrainConfig.from_dict(record["config"]).recipe()
    if different := sorted(key for key, value in config.recipe().items() if before.get(key) != value):
        raise UsageError(
            f"{path} was trained with other settings ({', '.join(different)}): remove it, or choose another results "
            "folder."
        )
