"""The settings of a training: with the data and the augmentation, they determine its result."""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, TypeVar

from equicaps._checks import check_choice, check_not_negative
from equicaps.losses import Objective
from equicaps.models import POINT_PRESETS, Architecture, GroupCapsNet, PointArchitecture, PointCapsNet

C = TypeVar("C")
Number = int | float
"""For a type checker ``float`` includes ``int``; beartype, which runs in the tests, distinguishes them."""


@dataclass(frozen=True)
class Budget:
    """How long to train: exactly one of optimiser steps, epochs, or CPU-minutes (of all processes, without evaluation).

    CPU-minutes are converted to steps after the first 20 steps, which count towards the budget, have been timed. A
    resumed training keeps that plan. ``up_to_minutes`` plans enough views of every image (:mod:`.plan`) within so many
    CPU-minutes, and makes fewer steps if the evaluations stop improving: they must not look at test images.
    """

    steps: int | None = None
    epochs: float | None = None
    minutes: float | None = None
    up_to_minutes: float | None = None

    @property
    def most_minutes(self) -> float | None:
        """The CPU-minutes at most; None if nothing limits them."""
        return self.up_to_minutes if self.minutes is None else self.minutes

    def __post_init__(self) -> None:
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if len(given) != 1:
            raise ValueError(
                f"Budget: give exactly one of steps, epochs, minutes and up_to_minutes, "
                f"but {given or 'none'} was given."
            )
        for name, value in given.items():
            _positive(f"Budget: `{name}`", value)


@dataclass(frozen=True)
class Optimiser:
    """AdamW with its schedule, gradient clipping and averaging of the weights.

    ``one_cycle``: a cosine rises to ``rate`` over the fraction ``warmup`` of the steps and falls to nearly zero, while
    the first beta moves the opposite way between 0.95 and 0.85 (Smith & Topin, 2018). ``step``: ``rate`` is multiplied
    by ``step_factor`` at each of the fractions ``step_at`` of the training.
    """

    rate: float = 6e-3
    weight_decay: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.99)
    schedule: Literal["one_cycle", "step"] = "one_cycle"
    warmup: float = 0.2
    step_at: tuple[float, ...] = (1 / 3, 2 / 3)
    step_factor: float = 0.1
    clip: float | None = None
    """The largest allowed norm of the gradient; None disables clipping."""
    ema: float | None = None
    """The decay of a moving average of the weights, which is evaluated and exported instead; None disables it."""

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
    """How often to log, evaluate and save."""

    log_steps: int = 20
    evaluations: int = 10
    """The number of evaluations, evenly spaced, the last one at the end."""
    evaluation_images: int | None = 2000
    """The number of images of every evaluation but the last, and of those that give the zero angles; None for all."""
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
    """Where a training runs. Not part of the recipe: a training may be resumed elsewhere."""

    threads: int = 1
    """The number of CPU threads of each process."""
    device: str = "auto"
    mixed_precision: bool = True
    """Compute in bfloat16 on a CUDA device; has no effect elsewhere."""

    def __post_init__(self) -> None:
        _positive("Hardware: `threads`", self.threads)
        if not re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", self.device):
            raise ValueError(f"Hardware: `device` must be auto, cpu, cuda, cuda:0, ... or mps, but is {self.device!r}.")


@dataclass(frozen=True)
class TrainConfig:
    """All settings. A batch, over all processes, is ``batch`` views: ``views`` of each of ``batch / views`` images."""

    budget: Budget
    model: Architecture | PointArchitecture = field(default_factory=Architecture)
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
    def image_model(self) -> Architecture:
        """``model``, in a training on images."""
        if not isinstance(self.model, Architecture):
            raise TypeError(f"{self.model.preset} is a network for points of space, which takes no images.")
        return self.model

    @property
    def images_per_step(self) -> int:
        """The number of different images in a batch."""
        return self.batch // self.views

    def steps(self, images: int) -> int | None:
        """The number of steps on this many training images; None for CPU-minutes, which have to be timed first."""
        if self.budget.steps is not None:
            return self.budget.steps
        if self.budget.epochs is not None:
            return math.ceil(self.budget.epochs * images / self.images_per_step)
        return None

    def network(self) -> GroupCapsNet | PointCapsNet:
        """The network that ``model`` describes, initialised from ``seed``; it must suit the objective."""
        if self.objective.reconstruction > 0 and not getattr(self.model, "decoder", False):
            raise ValueError(
                f"the reconstruction loss (weight {self.objective.reconstruction}) needs a network with a decoder, but "
                "`model.decoder` is off: use Architecture(decoder=True), or Objective(reconstruction=0)."
            )
        return self.model.build(self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Nested dictionaries that JSON can hold."""
        return asdict(self)

    def recipe(self) -> dict[str, Any]:
        """The settings that a resumed training must share with the one it continues, as ``{"optimiser.rate": ...}``."""
        config = self.to_dict()
        parts = {key: config.pop(key) for key in ("budget", "model", "optimiser", "objective")}
        flat = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in {**flat, **{name: config[name] for name in ("batch", "views", "seed")}}.items()
        }

    def changed(self, changes: Mapping[str, Any]) -> "TrainConfig":
        """The config with other settings, named as in :meth:`recipe`; those that are None stay unchanged."""
        values = self.to_dict()
        for name, value in changes.items():
            if value is not None:
                part, _, setting = name.rpartition(".")
                (values[part] if part else values)[setting] = value
        return self.from_dict(values)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TrainConfig":
        """The inverse of :meth:`to_dict`; also reads older files, in which ``hardware`` has a number of processes."""
        kind = PointArchitecture if values.get("model", {}).get("preset") in POINT_PRESETS else Architecture
        parts = {"budget": Budget, "model": kind, "optimiser": Optimiser, "objective": Objective,
                 "intervals": Intervals, "hardware": Hardware}  # fmt: skip
        hardware = {name: value for name, value in values.get("hardware", {}).items() if name != "processes"}
        values = {**values, "hardware": hardware}
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
