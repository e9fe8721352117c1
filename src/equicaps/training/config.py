"""What a training is: everything that, with the data, determines its result."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from equicaps._checks import check_choice, check_not_negative
from equicaps.losses import Objective
from equicaps.models import Architecture, GroupCapsNet

C = TypeVar("C")
Number = int | float
"""Both are numbers to the type checker; the one that runs in the tests takes them apart."""


@dataclass(frozen=True)
class Budget:
    """How long: exactly one of optimiser steps, epochs, or CPU-minutes (over all processes, without evaluation).

    CPU-minutes become steps once the first 20 steps, which count, were timed; a resumed training keeps that plan.
    """

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None

    def __post_init__(self) -> None:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if len(given) != 1:
            raise ValueError(f"Budget: give exactly one of steps, epochs and minutes, but {given or 'none'} was given.")
        for name, value in given.items():
            _positive(f"Budget: `{name}`", value)


@dataclass(frozen=True)
class Optimiser:
    """AdamW, its schedule, and what happens to gradients and weights around it.

    ``one_cycle``: cosine up to ``rate`` over the first ``warmup`` of the steps and down to nothing, the first beta
    running against it between 0.95 and 0.85 (Smith & Topin, 2018). ``step``: ``rate`` times ``step_factor`` after each
    of the ``step_at`` fractions of the training.
    """

    rate: float = 6e-3
    weight_decay: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.99)
    schedule: Literal["one_cycle", "step"] = "one_cycle"
    warmup: float = 0.2
    step_at: tuple[float, ...] = (1 / 3, 2 / 3)
    step_factor: float = 0.1
    clip: float | None = None
    """Largest norm of the gradient; None clips nothing."""
    ema: float | None = None
    """Decay of the running average of the weights, which is then what is evaluated and exported; None is off."""

    def __post_init__(self) -> None:
        _positive("Optimiser: `rate`", self.rate)
        check_not_negative("Optimiser: `weight_decay`", self.weight_decay)
        check_choice("schedule", self.schedule, ("one_cycle", "step"))
        if self.clip is not None:
            _positive("Optimiser: `clip`", self.clip)
        if self.ema is not None and not 0 < self.ema < 1:
            raise ValueError(f"Optimiser: `ema` must lie between 0 and 1, for instance 0.999, but is {self.ema}.")


@dataclass(frozen=True)
class Intervals:
    """When to log, evaluate and save."""

    log_steps: int = 20
    evaluations: int = 10
    """Evenly spaced, the last one at the end."""
    evaluation_images: int | None = 2000
    """How many images all but the last evaluation look at, and how many give the zero angles; None: all."""
    checkpoint_seconds: float = 240.0
    checkpoint_steps: int | None = None

    def __post_init__(self) -> None:
        _positive("Intervals: `log_steps`", self.log_steps)
        check_not_negative("Intervals: `checkpoint_seconds`", self.checkpoint_seconds)
        if self.evaluation_images is not None:
            _positive("Intervals: `evaluation_images`", self.evaluation_images)
        if self.checkpoint_steps is not None:
            _positive("Intervals: `checkpoint_steps`", self.checkpoint_steps)


@dataclass(frozen=True)
class Hardware:
    """Where it runs. Not part of the recipe: a training may be resumed elsewhere."""

    processes: int = 1
    threads: int = 1
    """Of each process, on the CPU."""
    device: str = "auto"
    mixed_precision: bool = True
    """bfloat16 where there is a CUDA device; nothing elsewhere."""

    def __post_init__(self) -> None:
        _positive("Hardware: `processes`", self.processes)
        _positive("Hardware: `threads`", self.threads)
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device):
            raise ValueError(f"Hardware: `device` must be auto, cpu, cuda, cuda:0, ... or mps, but is {self.device!r}.")


@dataclass(frozen=True)
class TrainConfig:
    """A training. ``batch`` counts views over all processes: ``views`` augmented views of batch / views images."""

    budget: Budget
    model: Architecture = field(default_factory=Architecture)
    optimiser: Optimiser = field(default_factory=Optimiser)
    objective: Objective = field(default_factory=Objective)
    batch: int = 64
    views: int = 2
    seed: int = 0
    intervals: Intervals = field(default_factory=Intervals)
    hardware: Hardware = field(default_factory=Hardware)

    def __post_init__(self) -> None:
        check_choice("views", self.views, (1, 2))
        _positive("`batch`", self.batch)
        if not 0 <= self.seed < 2**63:
            raise ValueError(f"`seed` must be a whole number from 0 to 2**63 - 1, but is {self.seed}.")
        if self.views == 1 and self.objective.consistency:
            raise ValueError(
                "the consistency loss compares two views of each image, but `views` is 1: "
                "use Objective(consistency=0) or views=2."
            )
        if self.batch % self.views:
            raise ValueError(f"`batch` must be a multiple of the {self.views} views, but is {self.batch}.")

    @property
    def images_per_step(self) -> int:
        """Different images in a batch."""
        return self.batch // self.views

    def steps(self, images: int) -> int | None:
        """The number of steps on a training set of so many images, or None while CPU-minutes are not yet timed."""
        if self.budget.steps is not None:
            return self.budget.steps
        if self.budget.epochs is not None:
            return math.ceil(self.budget.epochs * images / self.images_per_step)
        return None

    def network(self) -> GroupCapsNet:
        """The network that ``model`` describes, with weights from ``seed``; refused if the objective needs another."""
        if self.objective.reconstruction > 0 and not self.model.decoder:
            raise ValueError(
                f"the reconstruction loss (weight {self.objective.reconstruction}) needs a network with a decoder, but "
                "`model.decoder` is off: use Architecture(decoder=True), or Objective(reconstruction=0)."
            )
        return self.model.build(self.seed)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)

    def recipe(self) -> dict[str, Any]:
        """What a resumed training must share with the one it continues, flat."""
        config = self.to_dict()
        parts = {key: config.pop(key) for key in ("budget", "model", "optimiser", "objective")}
        flat = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in {**flat, **{name: config[name] for name in ("batch", "views", "seed")}}.items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainConfig":
        """The inverse of :meth:`to_dict`."""
        parts = {"budget": Budget, "model": Architecture, "optimiser": Optimiser, "objective": Objective,
                 "intervals": Intervals, "hardware": Hardware}  # fmt: skip
        made = {name: _make(parts[name], value) if name in parts else value for name, value in values.items()}
        return _make(cls, made)


def _make(kind: type[C], values: Mapping[str, Any]) -> C:
    known = {entry.name for entry in fields(kind)}  # type: ignore[arg-type] # only dataclasses come here
    if unknown := set(values) - known:
        raise ValueError(f"{kind.__name__}: unknown settings {sorted(unknown)}; known are {sorted(known)}.")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _positive(name: str, value: Number) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, but is {value}.")
