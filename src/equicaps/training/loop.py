"""The training loop."""

import contextlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from equicaps._files import lock_folder, prepare_folder
from equicaps.data import Dataset, Shapes
from equicaps.data.shapes import POINTS
from equicaps.errors import UsageError
from equicaps.inference.model_files import MODEL, save_model
from equicaps.models import GroupCapsNet, PointCapsNet
from equicaps.training.about import about_images, about_shapes
from equicaps.training.checkpoint import has_checkpoint, load_checkpoint, pack, save_checkpoint, unpack
from equicaps.training.config import Number, TrainConfig
from equicaps.training.distributed import join_world
from equicaps.training.evaluation import Evaluation
from equicaps.training.fingerprint import fingerprint, what_differs
from equicaps.training.interrupt import StopRequest
from equicaps.training.log import RunLog, write_result
from equicaps.training.plan import Outlook, has_stalled, outlook
from equicaps.training.progress import Progress, RecentSteps
from equicaps.training.recipe import describe_augmentation, describe_data, differences, recipe
from equicaps.training.sampler import Augment
from equicaps.training.trainer import StepFigures, Trainer

Watch = Callable[[Progress], None]


@dataclass(frozen=True)
class Result:
    """What a training produced. If it was asked to stop, it is not ``finished`` and can be resumed."""

    network: nn.Module
    finished: bool
    step: int
    images: int
    cpu_minutes: float
    curve: list[dict[str, Number]]
    training_accuracy: float | None = None
    """Percent of the last training views; None before the first step."""
    confusion: list[list[int]] | None = None
    """The number of test images of each class (rows) with each answer (columns), if the evaluation counted them."""
    shortened: bool = False
    """Whether the training made fewer steps than planned, because the evaluations stopped improving."""

    @property
    def outlook(self) -> Outlook | None:
        """Whether a longer training would have helped; None if no validation images tell."""
        return outlook(self.curve, self.training_accuracy, shortened=self.shortened)

    @property
    def figures(self) -> dict[str, Number]:
        """The figures of the last evaluation."""
        return self.curve[-1] if self.curve else {}


def train(
    config: TrainConfig,
    data: Dataset | Shapes,
    augmentation: Augment,
    *,
    folder: Path | str,
    network: nn.Module | None = None,
    evaluation: Evaluation | None = None,
    validation: Dataset | Shapes | None = None,
    resume: bool = False,
    other_images: bool = False,
    watch: Watch | None = None,
    tensorboard: bool = False,
) -> Result:
    """Train a network, together with the other processes if ``torchrun`` started several.

    Writes ``checkpoint.safetensors``, ``steps.csv``, ``evaluations.csv``, ``result.json`` and ``model.safetensors``
    into ``folder``, which no other training may use at the same time. On one process, a resumed training continues bit
    for bit. Ctrl-C finishes the current step, saves and returns; a second one interrupts immediately.

    Args:
        config: the settings.
        data: the training set.
        augmentation: makes random views of its images; of shapes, with as many points as its ``points`` says.
        folder: where to write; only the first process uses it.
        network: is trained in place, from the parameters that it has; by default a new one that ``config.model``
            describes. Any module with the outputs of a :class:`GroupCapsNet` can be trained, but only a
            :class:`GroupCapsNet` is exported as a model.
        evaluation: measures the network at intervals and at the end, in the first process. With
            ``Budget(up_to_minutes=...)`` it also decides when to stop; :class:`LookOnce` keeps test images out of that.
        validation: images or shapes that are not in ``data``, on which the error of predicted angles or rotations is
            measured at the end.
        resume: continue the training in ``folder``, if there is one.
        other_images: continue it also if the images are not those that it was started with.
        watch: is called after every step, in the first process.
        tensorboard: also write logs for TensorBoard.
    """
    new = network is None
    network = config.network() if network is None else network
    world = join_world(config.hardware.device)
    threads = torch.get_num_threads()
    torch.set_num_threads(config.hardware.threads)
    try:
        run = _Run(Trainer(config, network, data, augmentation, world), Path(folder), evaluation, validation, watch)
        with contextlib.closing(run):
            run.begin(new=new, resume=resume, other_images=other_images, tensorboard=tensorboard)
            with StopRequest() as stop:
                return run.train(stop)
    finally:
        torch.set_num_threads(threads)


class _Run:
    """A trainer with its folder: logs, evaluations, checkpoints and the result."""

    def __init__(
        self,
        trainer: Trainer,
        folder: Path,
        evaluation: Evaluation | None,
        validation: Dataset | Shapes | None,
        watch: Watch | None,
    ) -> None:
        self.trainer, self.config, self.world = trainer, trainer.config, trainer.world
        self.data, self.augmentation = trainer.sampler.data, trainer.sampler.augmentation
        self.seen = fingerprint(self.data)
        self.folder, self.evaluation, self.validation, self.watch = folder, evaluation, validation, watch
        self.curve: list[dict[str, Number]] = []
        self.confusion: list[list[int]] | None = None
        self.wall_seconds = 0.0
        self.recent = RecentSteps()
        self.log: RunLog | None = None
        self.resources = contextlib.ExitStack()

    def begin(self, *, new: bool, resume: bool, other_images: bool, tensorboard: bool) -> None:
        """Start, with a new network or a given one, or continue. Only the first process needs to see the folder."""
        mine = {**recipe(self.config, self.data, self.augmentation), "fingerprint": self.seen}
        if different := differences(json.loads(self.world.share(json.dumps(mine).encode())), mine):
            raise UsageError(f"the processes were started with different settings ({different}).")
        packed = b""
        if self.world.leads:
            self.resources.enter_context(lock_folder(self.folder, wait=False))
            prepare_folder(self.folder)
            if has_checkpoint(self.folder):
                if not resume:
                    raise UsageError(f"{self.folder} already contains a training: resume it, or choose a new folder.")
                tensors, content = load_checkpoint(self.folder, set_aside=True)
                self._check_recipe(content, mine)
                if not other_images:
                    self._check_images(content)
                packed = pack(tensors, content)
        if packed := self.world.share(packed):
            tensors, content = unpack(packed)
            self.trainer.restore(tensors, content)
            self.curve, self.wall_seconds = content["curve"], content["wall_seconds"]
            self.confusion = content.get("confusion")
        elif new:
            self.trainer.begin()
        if self.world.leads:
            self.log = RunLog(self.folder, self.trainer.step, tensorboard=tensorboard)
            self.resources.callback(self.log.close)

    def _check_recipe(self, content: dict[str, Any], mine: dict[str, Any]) -> None:
        before = {**TrainConfig.from_dict(content["config"]).recipe(), "data": content["data"]}
        if "augmentation" in content:  # the first checkpoints had none
            before["augmentation"] = content["augmentation"]
        if different := differences(before, mine):
            raise UsageError(
                f"the training in {self.folder} was started with other settings ({different}): resume it with those, "
                "or choose a new folder."
            )

    def _check_images(self, content: dict[str, Any]) -> None:
        # The first checkpoints had no fingerprint.
        if different := what_differs(content.get("fingerprint", self.seen), self.seen):
            raise UsageError(
                f"the training in {self.folder} was started with other data: in {self.data.name}, {different} "
                "changed since then. Undo that, or start a new training in another folder; to go on with "
                "these images on purpose, say --other-images (in Python, other_images=True)."
            )

    def train(self, stop: StopRequest) -> Result:
        trainer, intervals = self.trainer, self.config.intervals
        saved = time.monotonic()
        stopped = False
        while not (trainer.finished or stopped):
            started = time.monotonic()
            figures = trainer.advance(stop.asked, shorten=self._is_to_be_shortened())
            seconds = time.monotonic() - started
            stopped = figures.stop
            self.wall_seconds += seconds
            self.recent.add(figures, seconds)
            if self.world.leads:
                self._after_step(figures)
                every = intervals.checkpoint_steps
                due = time.monotonic() - saved >= intervals.checkpoint_seconds or (every and trainer.step % every == 0)
                if due or stopped or trainer.finished:
                    self._save()
                    saved = time.monotonic()
        if self.world.leads and trainer.finished:
            self._finish()
        self.world.wait_for_first()  # torchrun may end every process as soon as one has ended
        return self._result()

    def close(self) -> None:
        self.resources.close()

    def _is_to_be_shortened(self) -> bool:
        """Depends only on what a checkpoint contains, so that a resumed training decides alike."""
        return self.config.budget.up_to_minutes is not None and has_stalled(self.curve, self.trainer.course)

    def _after_step(self, figures: StepFigures) -> None:
        trainer, intervals = self.trainer, self.config.intervals
        speed = self.recent.images_per_second(self.config.batch)
        left = None if trainer.steps is None else (trainer.steps - trainer.step) * self.config.batch / speed
        evaluated = None
        if self._evaluation_is_due():
            evaluated = self._evaluate(intervals.evaluation_images)
        if self.log and (trainer.step % intervals.log_steps == 0 or trainer.finished):
            row = {"step": trainer.step, "images": trainer.images, **self.recent.take_means()}
            self.log.add_step({**row, "images_per_second": speed, "cpu_minutes": trainer.cpu_seconds / 60})
        if self.watch:
            self.watch(Progress(trainer.step, trainer.steps, figures, speed, left, evaluated, trainer.plan))

    def _evaluation_is_due(self) -> bool:
        steps, step, count = self.trainer.steps, self.trainer.step, self.config.intervals.evaluations
        if self.evaluation is None or steps is None or step >= steps:
            return False  # the last evaluation comes after the weights have been saved
        return step * count // steps > (step - 1) * count // steps

    def _evaluate(self, limit: int | None) -> dict[str, Number]:
        assert self.evaluation is not None
        trainer = self.trainer
        mode = trainer.best.training
        trainer.best.eval()
        try:
            with torch.no_grad():
                found = dict(self.evaluation(trainer.best, limit))
        finally:
            trainer.best.train(mode)
        self.confusion = found.pop("confusion", self.confusion)
        row = {"step": trainer.step, "images_seen": trainer.images, "cpu_minutes": trainer.cpu_seconds / 60, **found}
        self.curve.append(row)
        if self.log:
            self.log.add_evaluation(row)
        return row

    def _save(self) -> None:
        save_checkpoint(self.folder, self.trainer.tensors(), {**self._content(), **self.trainer.numbers()})

    def _finish(self) -> None:
        trainer = self.trainer
        if self.evaluation is not None and (not self.curve or self.curve[-1]["step"] < trainer.step):
            self._evaluate(None)
            self._save()
        result = self._result()
        content = {**self._content(), **trainer.numbers(), "images_seen": trainer.images, "figures": result.figures,
                   "outlook": result.outlook and result.outlook._asdict(), "processes": self.world.size}  # fmt: skip
        write_result(self.folder, content)
        if isinstance(trainer.best, GroupCapsNet | PointCapsNet):
            content.pop("confusion", None)  # may be large
            network = trainer.best.eval()
            if isinstance(self.data, Shapes):
                assert not isinstance(self.validation, Dataset)
                content |= about_shapes(network, self.config, self.data, self.validation, content, points=self._points)
            else:
                assert not isinstance(self.validation, Shapes)
                content |= about_images(network, self.config, self.data, self.validation, content)
            save_model(self.folder / MODEL, network, content)

    @property
    def _points(self) -> int:
        """How many points of a shape the views have."""
        return getattr(self.augmentation, "points", POINTS)

    def _content(self) -> dict[str, Any]:
        return {"config": self.config.to_dict(), "data": describe_data(self.data), "classes": list(self.data.classes),
                "augmentation": describe_augmentation(self.augmentation), "curve": self.curve,
                "fingerprint": self.seen, "confusion": self.confusion, "wall_seconds": self.wall_seconds}  # fmt: skip

    def _result(self) -> Result:
        trainer = self.trainer
        trainer.best.eval()
        return Result(
            trainer.best, trainer.finished, trainer.step, trainer.images, trainer.cpu_seconds / 60, self.curve,
            trainer.accuracy, self.confusion, trainer.shortened,
        )  # fmt: skip
