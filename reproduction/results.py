"""The folder of results: trainings with their weights, and what was measured on them."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from rich.console import Console
from rich.progress import track

from equicaps._files import create_folder, prepare_folder, write_bytes, write_json
from equicaps.cli.progress import TrainingBar
from equicaps.data import Dataset, Shapes
from equicaps.errors import NotFoundError, UsageError
from equicaps.images import Augmentation
from equicaps.inference.model_files import MODEL, read_model
from equicaps.models import GroupCapsNet
from equicaps.training import Evaluation, TrainConfig, train
from equicaps.training.log import RESULT, provenance
from equicaps.training.recipe import describe_augmentation
from equicaps.training.sampler import Augment
from reproduction import ledger
from reproduction.protocols import PROTOCOLS, QUICK, Protocol, mnist, quick_digits
from reproduction.trainings import TRAININGS

T = TypeVar("T")
Record = dict[str, Any]
"""The content of a JSON file."""

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""


@dataclass(frozen=True)
class Results:
    """A folder with the trainings, ``runs/NAME.json`` and ``runs/NAME.safetensors``, and a record of each experiment.

    Attributes:
        folder: is created when something is written.
        quick: whether to use the package's digits and a few steps only; the figures then mean nothing.
        train: whether to train what is missing; otherwise it stays missing.
        console: shows progress; silent by default.
    """

    folder: Path
    quick: bool = False
    train: bool = True
    console: Console = field(default_factory=lambda: Console(quiet=True))

    @property
    def published(self) -> bool:
        """Whether the pages of this checkout show these results."""
        return not self.quick and self.folder.resolve() == ROOT / "results"

    @property
    def pictures(self) -> Path:
        """The folder for pictures."""
        return ROOT / "docs" / "figures" if self.published else self.folder / "figures"

    def training(self, name: str) -> Record | None:
        """The record of a training, which is trained or continued unless it is finished; None if that is not wanted."""
        training, path = TRAININGS[name], self._path(name)
        config = training.config(quick=self.quick)
        if path.exists():
            record: Record = json.loads(path.read_text())
            if record["quick"] != self.quick:
                kind = "a quick" if record["quick"] else "a full"
                raise UsageError(
                    f"{self.folder} holds {kind} training of {name}: choose another folder with --results."
                )
            if not self.quick:
                check_settings(path, record, config, training.augmentation)
            return record
        if not self.train:
            return None
        protocol, unfinished = self._protocols[training.protocol], self.unfinished(name)
        record = finish_training(
            config,
            protocol.training(),
            training.augmentation or protocol.augmentation,
            protocol.test(),
            unfinished,
            self.console,
        )
        record |= {"run": name, "protocol": training.protocol, "quick": self.quick}
        create_folder(path.parent)
        (unfinished / MODEL).replace(path.with_suffix(".safetensors"))
        write_json(path, record)
        self._write_down_look(record)
        return record

    def validate(self, name: str, changes: dict[str, Any]) -> Record:
        """Train with other settings, and measure on images that are not trained on; no test image is read.

        ``changes`` are attributes of the training, the ``shift`` of its views, or how far they ``stretch``.

        Returns the record, ``validation/NAME-CHANGES.json``, which is only read if it exists.
        """
        label = "-".join([name, *(f"{key}={value}" for key, value in sorted(changes.items()))])
        path = self.folder / "validation" / f"{label}.json"
        if path.exists():
            found: Record = json.loads(path.read_text())
            return found
        settings = {key: value for key, value in changes.items() if key not in ("shift", "stretch")}
        training = replace(TRAININGS[name], **settings)
        protocol = self._protocols[training.protocol]
        record = finish_training(
            training.config(quick=self.quick),
            (protocol.selection or protocol.training)(),
            changed_views(training.augmentation or protocol.augmentation, **changes),
            protocol.validation(),
            self.unfinished(f"validation-{label}"),
            self.console,
        )
        create_folder(path.parent)
        write_json(path, record | {"run": label, "protocol": training.protocol, "quick": self.quick})
        return record

    def entry(self, name: str) -> Record | None:
        """The figures of a training with their provenance, as the experiments record them; None if it is missing."""
        record = self.training(name)
        return None if record is None else described(record)

    def trained(self, name: str) -> tuple[Record, GroupCapsNet] | None:
        """The entry of a training and its network in eval mode; None if either is missing.

        The repository keeps the weights of some trainings only: those that are shipped, measured again or drawn from.
        """
        entry, weights = self.entry(name), self._path(name).with_suffix(".safetensors")
        if entry is None or not weights.exists():
            return None
        network, _ = read_model(weights)
        self._write_down_look(entry)
        return entry, network

    def state(self, name: str) -> Literal["finished", "unfinished", "missing"]:
        """How far a training has come."""
        if self._path(name).exists():
            return "finished"
        return "unfinished" if self.unfinished(name).exists() else "missing"

    def unfinished(self, name: str) -> Path:
        """The folder in which a training keeps its checkpoints."""
        return self.folder / "unfinished" / name

    def measure_again(self, name: str) -> Record:
        """Test a finished training with the current code and rewrite its record, which then names both commits.

        This is for changes of the code after which the same weights give other predictions.
        """
        path, record = self._path(name), replace(self, train=False).training(name)
        if record is None:
            raise NotFoundError(f"{path} does not exist: {name} must be trained before it can be measured again.")
        if not path.with_suffix(".safetensors").exists():
            raise NotFoundError(f"{name} was kept without weights: remove {path} and train it again.")
        network, _ = read_model(path.with_suffix(".safetensors"))
        figures = self._protocols[record["protocol"]].test()(network, None)
        record |= {"figures": record["figures"] | dict(figures), "measured_with": provenance()}
        write_json(path, record)
        self._write_down_look(record)
        return record

    def digits(self) -> Dataset:
        """MNIST's test digits, or a few of them in a quick run."""
        return quick_digits() if self.quick else mnist("test")

    def track(self, items: Sequence[T], what: str) -> Iterable[T]:
        """The items, with a progress bar on a terminal."""
        return track(items, what, console=self.console, transient=True, disable=not self.console.is_terminal)

    def write(self, experiment: str, content: Record) -> Record:
        """Write ``EXPERIMENT.json`` together with the commit that measured it; returns all of it."""
        prepare_folder(self.folder)
        whole = {"experiment": experiment, "quick": self.quick, **content, "measured_with": provenance()}
        text = json.dumps(whole, indent=1, allow_nan=False)
        write_bytes(self.folder / f"{experiment}.json", f"{text}\n".encode())
        return whole

    @property
    def _protocols(self) -> dict[str, Protocol]:
        return QUICK if self.quick else PROTOCOLS

    def _write_down_look(self, record: Record) -> None:
        if not self.quick:
            test = PROTOCOLS[TRAININGS[record["run"]].protocol].tested_on
            ledger.write_down(self.folder, run=record["run"], trained_by=record["commit"], test=test)

    def _path(self, name: str) -> Path:
        return self.folder / "runs" / f"{name}.json"


def changed_views(
    augmentation: Augmentation, *, shift: float | None = None, stretch: float | None = None, **_: Any
) -> Augmentation:
    """The augmentation with another shift, or whose views are scaled by up to ``1 ± stretch`` along each axis."""
    if shift is not None:
        augmentation = replace(augmentation, shift=shift)
    return augmentation if stretch is None else replace(augmentation, scale=(1 - stretch, 1 + stretch))


def finish_training(
    config: TrainConfig,
    data: Dataset | Shapes,
    augmentation: Augment,
    evaluation: Evaluation,
    folder: Path,
    console: Console,
    validation: Shapes | None = None,
) -> Record:
    """Train, or continue training, to the end; returns the training's record."""
    console.print(f"training {folder.name}", markup=False, highlight=False)
    with TrainingBar(console, kind="shape" if isinstance(data, Shapes) else "image") as bar:
        result = train(
            config, data, augmentation, folder=folder, evaluation=evaluation, validation=validation, resume=True,
            watch=bar,
        )  # fmt: skip
    if not result.finished:
        raise KeyboardInterrupt(
            f"{folder.name} stopped after {result.step:,} steps and was saved: run the same command to continue."
        )
    record: Record = json.loads((folder / RESULT).read_text())
    return record


def check_settings(path: Path, record: Record, config: TrainConfig, augmentation: Augmentation | None = None) -> None:
    """Raise unless the record, found at ``path``, is of a training with these settings."""
    before, now = TrainConfig.from_dict(record["config"]).recipe(), config.recipe()
    if augmentation is not None:
        before["augmentation"], now["augmentation"] = record["augmentation"], describe_augmentation(augmentation)
    if different := sorted(key for key, value in now.items() if before.get(key) != value):
        raise UsageError(
            f"{path} was trained with other settings ({', '.join(different)}): remove it, or choose another folder "
            "with --results."
        )


def described(record: Record) -> Record:
    """The figures of a training with everything that produced them."""
    figures, config = record["figures"], record["config"]
    return {
        "run": record["run"],
        "preset": config["model"]["preset"],
        **{name: value for name, value in figures.items() if name not in ("step", "images", "images_seen")},
        "tested_on": PROTOCOLS[record["protocol"]].tested_on,
        "test_images": figures["images"],
        **provenance_of(record),
        "measured_with": record.get("measured_with", record)["commit"],
    }


def provenance_of(record: Record) -> Record:
    """What a network was trained on, at what cost, and by which commit."""
    return {
        "trained_on": record["data"]["name"],
        "training_images": record["data"]["images"],
        "augmentation": record.get("augmentation", "as its protocol says"),
        "images_seen": record["images_seen"],
        "cpu_minutes": record["cpu_seconds"] / 60,
        "seed": record["config"]["seed"],
        "commit": record["commit"],
        "config": record["config"],
    }
