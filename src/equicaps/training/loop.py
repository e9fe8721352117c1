"""The training loop."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from equicaps._files import lock_folder, prepare_folder
from equicaps.data import Dataset
from equicaps.errors import UsageError
from equicaps.images import Augmentation
from equicaps.inference.model_files import MODEL, save_model
from equicaps.metrics import class_zeros, on_cpu
from equicaps.models import GroupCapsNet
from equicaps.training.checkpoint import has_checkpoint, load_checkpoint, pack, save_checkpoint, unpack
from equicaps.training.config import Number, TrainConfig
from equicaps.training.distributed import World, choose_device
from equicaps.training.evaluation import Evaluation
from equicaps.training.interrupt import StopRequest
from equicaps.training.log import RunLog, write_result
from equicaps.training.sampler import Augment
from equicaps.training.trainer import StepFigures, Trainer


class Progress(NamedTuple):
    """Where a training stands, for a progress bar."""

    step: int
    steps: int | None
    """None while CPU-minutes are not yet turned into steps."""
    figures: StepFigures
    images_per_second: float
    seconds_left: float | None
    evaluation: Mapping[str, Number] | None = None
    """Given right after an evaluation."""


@dataclass(frozen=True)
class Result:
    """What came out. Not ``finished`` if it was asked to stop: then it can be resumed."""

    network: nn.Module
    finished: bool
    step: int
    images: int
    cpu_minutes: float
    curve: list[dict[str, Number]]

    @property
    def figures(self) -> dict[str, Number]:
        """Of the last evaluation."""
        return self.curve[-1] if self.curve else {}


def fit(
    config: TrainConfig,
    network: nn.Module,
    data: Dataset,
    augmentation: Augment,
    *,
    folder: Path | str,
    evaluation: Evaluation | None = None,
    resume: bool = False,
    watch: Callable[[Progress], None] | None = None,
    tensorboard: bool = False,
    world: World | None = None,
) -> Result:
    """Train a network in place, in this process, together with the others of ``world`` if there are any.

    Writes ``checkpoint.safetensors``, ``steps.csv``, ``evaluations.csv``, ``result.json`` and ``model.safetensors``
    into ``folder``, which no other training may use at the same time. On one process a resumed training continues bit
    for bit. Ctrl-C saves and returns.

    Args:
        config: what to do.
        network: a :class:`GroupCapsNet` for an export of the model; any module with its outputs can be trained.
        data: the training set.
        augmentation: of its images.
        folder: for the results.
        evaluation: measures the network at intervals and at the end, in the first process.
        resume: continue the training in ``folder``, if there is one.
        watch: is called after every step, in the first process.
        tensorboard: also write logs for TensorBoard.
        world: the processes of this training; by default this one alone.
    """
    world = world or World(choose_device(config.hardware.device))
    run = _Run(config, network, data, augmentation, world, Path(folder), evaluation, watch, tensorboard)
    try:
        run.begin(resume)
        with StopRequest() as stop:
            return run.train(stop)
    finally:
        run.close()


class _Run:
    def __init__(
        self,
        config: TrainConfig,
        network: nn.Module,
        data: Dataset,
        augmentation: Augment,
        world: World,
        folder: Path,
        evaluation: Evaluation | None,
        watch: Callable[[Progress], None] | None,
        tensorboard: bool,
    ) -> None:
        self.config, self.data, self.world, self.folder = config, data, world, folder
        self.evaluation, self.watch, self.tensorboard = evaluation, watch, tensorboard
        self.trainer = Trainer(config, network, data, augmentation, world)
        self.curve: list[dict[str, Number]] = []
        self.record: RunLog | None = None
        self.resources = contextlib.ExitStack()
        self.augmentation = describe(augmentation)
        self.wall_seconds = 0.0
        self.window = _Window()

    def begin(self, resume: bool) -> None:
        """Continue or start; only the first process needs to see the folder."""
        mine = self._recipe()
        if different := differences(json.loads(self.world.share(json.dumps(mine).encode())), mine):
            raise UsageError(f"the processes were started with different settings ({different}).")
        packed = b""
        if self.world.leads:
            self.resources.enter_context(lock_folder(self.folder, wait=False))
            prepare_folder(self.folder)
            if has_checkpoint(self.folder):
                if not resume:
                    raise UsageError(f"{self.folder} holds a training: resume it, or choose a new folder.")
                packed = pack(*self._compatible(*load_checkpoint(self.folder, set_aside=True)))
        if packed := self.world.share(packed):
            tensors, content = unpack(packed)
            self.trainer.restore(tensors, content)
            self.curve, self.wall_seconds = content["curve"], content["wall_seconds"]
        if self.world.leads:
            self.record = RunLog(self.folder, self.trainer.step, tensorboard=self.tensorboard)

    def _compatible(
        self, tensors: dict[str, Tensor], content: dict[str, Any]
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        before = {**TrainConfig.from_dict(content["config"]).recipe(), "data": content["data"]}
        if "augmentation" in content:  # not in the first checkpoints
            before["augmentation"] = content["augmentation"]
        if different := differences(before, self._recipe()):
            raise UsageError(
                f"the training in {self.folder} had other settings ({different}): resume it with those it had, or "
                "choose a new folder."
            )
        return tensors, content

    def train(self, stop: StopRequest) -> Result:
        trainer, intervals = self.trainer, self.config.intervals
        saved, self.window = time.monotonic(), _Window()
        while not trainer.finished:
            started = time.monotonic()
            figures = trainer.advance(stop.asked)
            seconds = time.monotonic() - started
            self.wall_seconds += seconds
            self.window.add(figures, seconds)
            if self.world.leads:
                self._after_step(figures)
                every = intervals.checkpoint_steps
                due = time.monotonic() - saved >= intervals.checkpoint_seconds or (every and trainer.step % every == 0)
                if due or figures.stop or trainer.finished:
                    self._save()
                    saved = time.monotonic()
            if figures.stop and not trainer.finished:
                return self._result(finished=False)
        if self.world.leads:
            self._finish()
        return self._result(finished=True)

    def close(self) -> None:
        if self.record:
            self.record.close()
        self.resources.close()

    def _after_step(self, figures: StepFigures) -> None:
        trainer, intervals = self.trainer, self.config.intervals
        speed = self.window.recent_speed(self.config.batch)
        left = None if trainer.steps is None else (trainer.steps - trainer.step) * self.config.batch / speed
        evaluated = None
        if self._evaluation_is_due():
            evaluated = self._evaluate(intervals.evaluation_images)
        if self.record and (trainer.step % intervals.log_steps == 0 or trainer.finished):
            row = {"step": trainer.step, "images": trainer.step * self.config.batch, **self.window.means()}
            minutes = trainer.cpu_seconds / 60
            self.record.step({**row, "images_per_second": speed, "cpu_minutes": minutes})
            self.window.clear()
        if self.watch:
            self.watch(Progress(trainer.step, trainer.steps, figures, speed, left, evaluated))

    def _evaluation_is_due(self) -> bool:
        steps, step, count = self.trainer.steps, self.trainer.step, self.config.intervals.evaluations
        if self.evaluation is None or steps is None or step >= steps:
            return False  # the last one comes when the weights are safe
        return step * count // steps > (step - 1) * count // steps

    def _evaluate(self, limit: int | None) -> dict[str, Number]:
        assert self.evaluation is not None
        trainer = self.trainer
        mode = trainer.best.training
        trainer.best.eval()
        try:
            with torch.no_grad():
                found = self.evaluation(trainer.best, limit)
        finally:
            trainer.best.train(mode)
        row = {"step": trainer.step, "images_seen": trainer.step * self.config.batch,
               "cpu_minutes": trainer.cpu_seconds / 60, **found}  # fmt: skip
        self.curve.append(row)
        if self.record:
            self.record.evaluation(row)
        return row

    def _save(self) -> None:
        save_checkpoint(self.folder, self.trainer.tensors(), {**self._content(), **self.trainer.numbers()})

    def _finish(self) -> None:
        trainer = self.trainer
        if self.evaluation is not None and (not self.curve or self.curve[-1]["step"] < trainer.step):
            self._evaluate(None)
            self._save()
        content = {**self._content(), **trainer.numbers(), "images_seen": trainer.step * self.config.batch,
                   "figures": self.curve[-1] if self.curve else {}, "processes": self.world.size}  # fmt: skip
        write_result(self.folder, content)
        if isinstance(trainer.best, GroupCapsNet):
            card = {"data": self.data.name, "zeros": self._zeros(), "frame": self.data.images.shape[-1],
                    "background": self.data.background}  # fmt: skip
            save_model(self.folder / MODEL, trainer.best, {**content, **card})

    def _zeros(self) -> list[float]:
        """The angles that the network gives to upright images, from some of the training images as they are."""
        some = self.data.some(self.config.intervals.evaluation_images)
        ready = Augmentation(self.config.model.image_size)(some.images).images
        network = on_cpu(self.trainer.best.eval())
        return class_zeros(network, ready, some.labels, classes=len(some.classes))

    def _content(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "data": self._data(), "classes": list(self.data.classes),
                "augmentation": self.augmentation, "curve": self.curve, "wall_seconds": self.wall_seconds}  # fmt: skip

    def _recipe(self) -> dict[str, Any]:
        return {**self.config.recipe(), "data": self._data(), "augmentation": self.augmentation}

    def _data(self) -> dict[str, Any]:
        return {"name": self.data.name, "images": len(self.data.images)}

    def _result(self, *, finished: bool) -> Result:
        trainer = self.trainer
        trainer.best.eval()
        images = trainer.step * self.config.batch
        return Result(trainer.best, finished, trainer.step, images, trainer.cpu_seconds / 60, self.curve)


def describe(augmentation: Augment) -> str:
    """Its ``repr``, without what differs between processes: addresses, and the name of the main module in helpers."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(augmentation)).replace("__mp_main__", "__main__")


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Which settings differ, as before -> now, for a message; empty if none."""
    found = []
    for key in before:
        old, new = _parts(before[key]), _parts(now[key])
        changed = [name for name in old if old[name] != new.get(name)]
        if changed and old.keys() == new.keys():
            found += [f"{key}.{name}: {old[name]} -> {new[name]}" for name in changed]
        elif before[key] != now[key]:
            found.append(f"{key}: {before[key]} -> {now[key]}")
    return "; ".join(found)


def _parts(setting: Any) -> dict[str, Any]:
    """The entries of a mapping, or the arguments in the ``repr`` of a dataclass; nothing for anything else."""
    if isinstance(setting, Mapping):
        return dict(setting)
    if isinstance(setting, str) and (kind := re.fullmatch(r"(\w+)\((\w+=.*)\)", setting)):
        return {"kind": kind[1], **dict(re.findall(r"(\w+)=(\(.*?\)|'.*?'|[^,]+)", kind[2]))}
    return {}


class _Window:
    """Means since the last row of the log, and speed over about the last 30 steps."""

    def __init__(self) -> None:
        self._rows: list[StepFigures] = []
        self._seconds: list[float] = []

    def add(self, figures: StepFigures, seconds: float) -> None:
        self._rows.append(figures)
        self._seconds = [*self._seconds[-29:], seconds]

    def recent_speed(self, batch: int) -> float:
        return batch * len(self._seconds) / sum(self._seconds)

    def means(self) -> dict[str, Number]:
        names = ("loss", "accuracy", "agreement_accuracy", "rate")
        return {name: sum(getattr(row, name) for row in self._rows) / len(self._rows) for name in names}

    def clear(self) -> None:
        self._rows = []
