"""Optimiser steps, one after another, and the state that the next one depends on."""

import contextlib
import copy
import logging
import math
import time
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from equicaps.data import Dataset, Shapes
from equicaps.errors import FileError, TrainingError, UsageError
from equicaps.functional.steerable import Mirror
from equicaps.losses import known_angle_loss, true_poses
from equicaps.models import GroupCapsNet, PointCapsNet
from equicaps.models.output import CapsOutput
from equicaps.numerics import OUT_OF_RANGE
from equicaps.training.config import TrainConfig
from equicaps.training.distributed import World, explained
from equicaps.training.plan import Course, Plan, enough_views
from equicaps.training.sampler import Augment, Sampler
from equicaps.training.schedule import pace

WARM_UP_STEPS, PILOT_STEPS = 5, 20
"""The steps between these two are timed to convert CPU-minutes to steps; all of them count towards the budget."""
SAFETY = 0.985
"""The fraction of the budget that is planned, because later steps are slightly slower."""
NEW_SHARE = 0.05
"""The weight of each step in the running mean of the training accuracy."""

UPRIGHT_POSE: dict[Mirror, float] = {"distinguish": 0.0, "ignore": 90.0}
"""The angle in degrees that poses of upright images learn, where angles are known. A network that ignores mirroring
mirrors the poses, so that those of symmetric objects cannot but point up or down."""
LEAST_SHARE = 0.25
"""Where fewer views of a batch have a known angle, the loss of each is weighted as if this share had: a single one, in
place of the whole batch, would disturb what all others learn."""

_log = logging.getLogger(__name__)


class StepFigures(NamedTuple):
    """The figures of one step, of the whole batch over all processes."""

    loss: float
    accuracy: float
    """Percent, by the scores."""
    agreement_accuracy: float
    """Percent, by the agreements."""
    rate: float
    stop: bool
    """Whether any process was asked to stop."""


class Trainer:
    """The network with its optimiser, averaged weights and step counter.

    Args:
        config: the settings.
        network: is trained in place, on the device of ``world``.
        data: the training set.
        augmentation: makes random views of its images.
        world: the processes that share the work.
    """

    def __init__(
        self, config: TrainConfig, network: nn.Module, data: Dataset | Shapes, augmentation: Augment, world: World
    ) -> None:
        if config.images_per_step % world.size:
            raise UsageError(
                f"{config.images_per_step} images in a batch ({config.batch} views) cannot be shared evenly by "
                f"{world.size} processes: choose a batch that is a multiple of {config.views * world.size}."
            )
        low, high = data.value_range()
        if world.leads and not -OUT_OF_RANGE <= low <= high <= 1 + OUT_OF_RANGE:
            _log.warning(
                "%s: pixels should lie in [0, 1], but range from %g to %g: divide by 255, or by the largest value. "
                "Training continues with these values.",
                data.name, low, high,
            )  # fmt: skip
        self.config, self.world = config, world
        self.network = network.to(world.device).train()
        world.broadcast([*network.parameters(), *network.buffers()])
        optimiser = config.optimiser
        named = dict(network.named_parameters())
        numbers = [name for name, value in named.items() if value.ndim == 0]  # of σ; decay would undo its calibration
        self._names = [name for name in named if name not in numbers] + numbers  # in the optimizer's order
        groups: list[dict[str, Any]] = [{"params": [named[name] for name in self._names[: len(named) - len(numbers)]]}]
        groups += [{"params": [named[name] for name in numbers], "weight_decay": 0.0}] if numbers else []
        self.optimizer = torch.optim.AdamW(
            groups, lr=optimiser.rate, betas=optimiser.betas, weight_decay=optimiser.weight_decay
        )
        self.average = copy.deepcopy(network).eval().requires_grad_(False) if optimiser.ema is not None else None
        self.sampler = Sampler(data, augmentation, images=config.images_per_step, views=config.views, seed=config.seed)
        steps = config.steps(len(data))
        self.step, self.course = 0, None if steps is None else Course(steps)
        self.plan: Plan | None = None
        self.accuracy: float | None = None
        """Percent of the last training views, a running mean."""
        self.cpu_seconds = 0.0
        self._warm = (0, 0.0)

    @property
    def steps(self) -> int | None:
        """The number of steps to make; None until the speed has been measured."""
        return None if self.course is None else self.course.steps

    @property
    def finished(self) -> bool:
        """Whether all planned steps have been made."""
        return self.steps is not None and self.step >= self.steps

    @property
    def shortened(self) -> bool:
        """Whether the rest of the plan is passed faster, or was."""
        return self.course is not None and self.course.shortened_after is not None

    @property
    def images(self) -> int:
        """The number of views that the network has seen."""
        return self.step * self.config.batch

    @property
    def best(self) -> nn.Module:
        """The network to evaluate and export: the averaged one if there is one, otherwise the one in training."""
        return self.network if self.average is None else self.average

    def begin(self) -> None:
        """Prepare the parameters of a new network with the first batch, see its ``calibrate``."""
        if isinstance(self.network, GroupCapsNet | PointCapsNet) and self.network.needs_calibration:
            inputs, kind = self.sampler.batch(0).inputs, next(self.network.parameters()).dtype
            self.network.calibrate(*(entry.to(self.world.device, kind) for entry in inputs))
            self.world.broadcast(list(self.network.parameters()))  # other machines may round differently
            if self.average is not None:
                self.average.load_state_dict(self.network.state_dict())

    def advance(self, stop: bool = False, shorten: bool = False) -> StepFigures:
        """Make one step together with the other processes.

        Args:
            stop: whether this process was asked to stop.
            shorten: whether this process has found that the rest of the plan is to be passed faster, after this step.
        """
        started = time.process_time()
        with explained():  # batch normalisation communicates with the other processes, too
            loss, output, labels = self._loss()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        correct = [(values.argmax(-1) == labels).double().mean().item() for values in output[:2]]
        shared = [loss.item(), *correct, float(stop), time.process_time() - started, float(shorten)]
        mean = self.world.average(self.network, shared)
        if not math.isfinite(mean[0]):
            raise TrainingError(
                f"the loss of step {self.step + 1} is {mean[0]}: lower the rate ({self.config.optimiser.rate}) or clip "
                "the gradient. The last checkpoint was saved before that."
            )
        started = time.process_time()
        current = self._update()
        self.step += 1
        self.cpu_seconds += (mean[4] + time.process_time() - started) * self.world.size
        if self.step == WARM_UP_STEPS:
            self._warm = (self.step, self.cpu_seconds)
        if self.steps is None and self.step == PILOT_STEPS:
            self._plan(*self._warm)
        if mean[5] > 0 and self.course is not None and not self.finished:
            self.course = Course(self.course.planned, shortened_after=self.step)
        before = 100 * mean[1] if self.accuracy is None else self.accuracy
        self.accuracy = before + NEW_SHARE * (100 * mean[1] - before)
        return StepFigures(mean[0], 100 * mean[1], 100 * mean[2], current, mean[3] > 0)

    def _loss(self) -> tuple[Tensor, CapsOutput, Tensor]:
        config, world = self.config, self.world
        whole = self.sampler.batch(self.step)
        batch = whole.part(world.rank, world.size, config.views)
        kind = next(self.network.parameters()).dtype
        degrees, *inputs = (entry.to(world.device, kind, non_blocking=True) for entry in (batch.degrees, *batch.inputs))
        labels = batch.labels.to(world.device, non_blocking=True)
        mixed = config.hardware.mixed_precision and world.device.type == "cuda"
        with torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext():
            output: CapsOutput = self.network(*inputs)
        if mixed:
            output = output.map(torch.Tensor.float)
        progress = 0.0 if self.course is None else (self.course.position(self.step) + 1) / self.course.planned
        loss = config.objective(output, inputs[0], labels, degrees, progress)
        if batch.angles is not None and whole.known:
            angles = (batch.angles + UPRIGHT_POSE[config.image_model.mirror]).to(world.device, kind, non_blocking=True)
            share = max(whole.known, LEAST_SHARE)
            loss = loss + known_angle_loss(true_poses(output, labels), angles, share)
        return loss, output, labels

    def _update(self) -> float:
        optimiser = self.config.optimiser
        course = self.course
        place, planned = (self.step, None) if course is None else (course.position(self.step), course.planned)
        current = pace(optimiser, place, planned)
        for group in self.optimizer.param_groups:
            group["lr"], group["betas"] = current.rate, (current.beta, optimiser.betas[1])
        if optimiser.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), optimiser.clip)
        self.optimizer.step()
        if self.average is not None and optimiser.ema is not None:
            # The first weights are noise, so the average starts with a short memory.
            decay = min(optimiser.ema, (1 + self.step) / (10 + self.step))
            follow(self.average, self.network, decay)
        return current.rate

    def _plan(self, first: int, spent: float) -> None:
        """Convert the budget of CPU-minutes to steps; all processes follow the plan of the first."""
        budget, batch, data = self.config.budget, self.config.batch, self.sampler.data
        enough = enough_views(len(data))
        assert budget.most_minutes is not None
        left = budget.most_minutes * 60 * SAFETY - self.cpu_seconds
        speed = (self.step - first) / (self.cpu_seconds - spent)
        more = int(left * speed)
        if budget.up_to_minutes is not None:
            more = min(more, math.ceil(enough / batch) - self.step)
        steps = self.step + int(self.world.share(str(max(more, 0)).encode()))
        minutes = (self.cpu_seconds + (steps - self.step) / speed) / 60
        self.plan = Plan(steps, steps * batch / data.different, minutes, steps * batch >= enough)
        self.course = Course(steps)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the next step depends on, except :meth:`numbers`."""
        parts = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for index, entries in self.optimizer.state_dict()["state"].items():
            parts |= {f"optimizer.{self._names[index]}.{key}": value for key, value in entries.items()}
        if self.average is not None:
            parts |= {f"average.{name}": value for name, value in self.average.state_dict().items()}
        parts["random.cpu"] = torch.get_rng_state()
        if self.world.device.type == "cuda":
            parts["random.cuda"] = torch.cuda.get_rng_state(self.world.device)
        return parts

    def numbers(self) -> dict[str, Any]:
        """The rest of the state."""
        course = self.course
        return {
            "step": self.step,
            "steps": self.steps,
            "planned_steps": course and course.planned,
            "shortened_after": course and course.shortened_after,
            "cpu_seconds": self.cpu_seconds,
            "training_accuracy": self.accuracy,
        }

    def restore(self, tensors: dict[str, Tensor], numbers: dict[str, Any]) -> None:
        """Continue from what :meth:`tensors` and :meth:`numbers` returned."""

        def part(name: str) -> dict[str, Tensor]:
            return {key.removeprefix(name): value for key, value in tensors.items() if key.startswith(name)}

        try:
            self.network.load_state_dict(part("network."))
            if self.average is not None:
                self.average.load_state_dict(part("average."))
        except RuntimeError as error:
            raise FileError(f"the checkpoint belongs to another network: {error}") from error
        state: dict[int, dict[str, Tensor]] = {}
        for index, name in enumerate(self._names):
            if entries := {key: value for key, value in part(f"optimizer.{name}.").items() if "." not in key}:
                state[index] = entries
        self.optimizer.load_state_dict({"state": state, "param_groups": self.optimizer.state_dict()["param_groups"]})
        torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and self.world.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.world.device)
        self.step, self.cpu_seconds = numbers["step"], numbers["cpu_seconds"]
        planned = numbers.get("planned_steps", numbers["steps"])  # the first checkpoints had only those
        self.course = None if planned is None else Course(planned, numbers.get("shortened_after"))
        self.accuracy = numbers.get("training_accuracy")


@torch.no_grad()
def follow(average: nn.Module, network: nn.Module, decay: float) -> None:
    """Move the averaged weights and statistics towards those of the network."""
    ahead = network.state_dict()
    for name, value in average.state_dict().items():
        if value.is_floating_point():
            value.lerp_(ahead[name], 1 - decay)
        else:
            value.copy_(ahead[name])
