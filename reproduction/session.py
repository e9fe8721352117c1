"""Where an experiment works: its folder, its data and trained networks, and who watches."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from equicaps._files import prepare_folder, write_bytes
from equicaps.data import Dataset
from equicaps.errors import UsageError
from equicaps.inference.model_files import load_model
from equicaps.models import GroupCapsNet
from equicaps.training import Progress
from equicaps.training.log import provenance
from reproduction.protocols import mnist, quick_digits
from reproduction.trainings import RUNS_FOLDER, execute

T = TypeVar("T")
Record = dict[str, Any]
"""What a JSON file holds."""


@runtime_checkable
class Watcher(Protocol):
    """Shows what is going on."""

    def training(self, name: str) -> AbstractContextManager[Callable[[Progress], None] | None]:
        """Around a training; gives what is called after every step."""

    def each(self, items: Sequence[T], what: str) -> Iterator[T]:
        """The items one after the other, with a bar."""


class Silent:
    """Shows nothing."""

    def training(self, name: str) -> AbstractContextManager[Callable[[Progress], None] | None]:
        """Nothing to call."""
        return contextlib.nullcontext()

    def each(self, items: Sequence[T], what: str) -> Iterator[T]:
        """Just the items."""
        return iter(items)


@dataclass(frozen=True)
class Session:
    """One call of ``equicaps reproduce``.

    Attributes:
        results: the folder of records and weights.
        quick: the digits in the package and a few steps: shows that everything runs, its figures mean nothing.
        train: whether to train what is missing; otherwise it stays missing.
        watcher: shows progress.
    """

    results: Path
    quick: bool = False
    train: bool = True
    watcher: Watcher = field(default_factory=Silent)

    def record(self, run: str) -> Record | None:
        """Of a training, which is trained or resumed if there is none; None if that is not wanted."""
        if not self.train and not (self.results / RUNS_FOLDER / f"{run}.json").exists():
            return None
        with self.watcher.training(run) as watch:
            record = execute(run, self.results, quick=self.quick, watch=watch)
        if record["quick"] != self.quick:
            kind = "a quick" if record["quick"] else "a full"
            raise UsageError(f"{self.results} holds {kind} training of {run}: choose another folder with --results.")
        return record

    def network(self, run: str) -> GroupCapsNet | None:
        """The trained network, in eval mode."""
        if self.record(run) is None:
            return None
        return load_model(self.results / RUNS_FOLDER / f"{run}.safetensors").network

    def digits(self) -> Dataset:
        """MNIST's test digits, all of them or a few."""
        return quick_digits() if self.quick else mnist("test")

    def write(self, name: str, content: Record) -> Record:
        """``NAME.json``, with the code that measured it."""
        prepare_folder(self.results)
        whole = {"experiment": name, "quick": self.quick, **content, "measured_with": provenance()}
        write_bytes(self.results / f"{name}.json", (json.dumps(whole, indent=1) + "\n").encode())
        return whole


def described(record: Record, tested_on: str) -> Record:
    """A training's figures with everything that they come from."""
    figures, config = record["figures"], record["config"]
    return {
        "run": record["run"],
        "preset": config["model"]["preset"],
        **{name: value for name, value in figures.items() if name not in ("step", "images", "images_seen")},
        "tested_on": tested_on,
        "test_images": figures["images"],
        "trained_on": record["data"]["name"],
        "training_images": record["data"]["images"],
        "images_seen": record["images_seen"],
        "cpu_minutes": record["cpu_seconds"] / 60,
        "seed": config["seed"],
        "commit": record["commit"],
        "measured_with": record.get("measured_with", record)["commit"],
        "config": config,
    }
