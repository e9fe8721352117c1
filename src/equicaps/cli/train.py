"""``equicaps train``: train a network, and resume at any moment."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import torch
import typer
from rich.console import Console

from equicaps.cli.processes import first_process_reports, is_first, launch
from equicaps.cli.progress import TrainingBar, describe, reading_bar
from equicaps.cli.reporting import FAILED, reported, say, settings_reported
from equicaps.cli.training_words import TINY, advise, describe_budget, describe_plan, show_confusion
from equicaps.data import Dataset, Shapes
from equicaps.data.by_name import NAMES
from equicaps.data.shapes_by_name import SHAPE_NAMES, holds_shapes
from equicaps.errors import NotFoundError, UsageError
from equicaps.inference.model_files import MODEL
from equicaps.models import POINT_PRESETS, Architecture
from equicaps.training import Budget, Intervals, LookOnce, Result, TrainConfig
from equicaps.training import train as run
from equicaps.training.checkpoint import has_checkpoint, saved_config
from equicaps.training.distributed import choose_device
from equicaps.training.log import RESULT
from equicaps.training.setup import SIDES, Setup, image_side, set_up
from equicaps.training.shape_setup import SHAPE_DEFAULTS, set_up_shapes

DEFAULTS = TrainConfig(Budget(up_to_minutes=10.0), intervals=Intervals(evaluations=10, evaluation_images=500))
"""The settings of a training on images that no option changes; those on shapes are ``SHAPE_DEFAULTS``."""


@first_process_reports()
def train(
    data: str,
    preset: str | None,
    out: Path | None,
    resume: bool,
    other_images: bool,
    minutes: float | None,
    epochs: float | None,
    steps: int | None,
    processes: int,
    seed: int | None,
    batch: int | None,
    rate: float | None,
    schedule: Literal["one_cycle", "step"] | None,
    decay: float | None,
    clip: float | None,
    ema: float | None,
    consistency: float | None,
    spread: float | None,
    reconstruction: float | None,
    mirror: Literal["distinguish", "ignore"] | None,
    angles: Path | None,
    upright: bool,
    any_orientation: bool,
    balance: bool,
    size: int | None,
    device: str | None,
    save_every: float | None,
    tensorboard: bool,
    as_json: bool,
) -> None:
    """Train, or continue, and print the result."""
    console = Console(stderr=True, quiet=not is_first())
    with settings_reported(console):
        shapes = holds_shapes(data)
        defaults = SHAPE_DEFAULTS if shapes else DEFAULTS
        _check_kind(
            data, shapes, preset, any_orientation,
            {"--reconstruction": reconstruction, "--mirror": mirror, "--angles": angles, "--upright": upright or None,
             "--balance": balance or None, "--size": size},
        )  # fmt: skip
        out = out or Path("runs") / f"{Path(data).resolve().name}-{preset or defaults.model.preset}"
        if has_checkpoint(out) and not resume:
            raise UsageError(
                f"{out} already contains a training: continue it with --resume, or name a new folder with --out."
            )
        saved = saved_config(out) if resume else None
        if saved is not None and isinstance(saved.model, Architecture) == shapes:
            holds, trained = ("shapes", "images") if shapes else ("images", "shapes")
            raise UsageError(f"{out} contains a training on {trained}, but {data} holds {holds}.")
        budget = {"minutes": minutes, "epochs": epochs, "steps": steps}
        config = replace(saved or defaults, intervals=defaults.intervals, hardware=defaults.hardware).changed(
            {
                "budget": budget if any(value is not None for value in budget.values()) else None,
                "model.preset": preset,
                "model.mirror": mirror,
                "model.decoder": bool(reconstruction) or None,
                "optimiser.rate": rate,
                "optimiser.schedule": schedule,
                "optimiser.weight_decay": decay,
                "optimiser.clip": clip,
                "optimiser.ema": ema,
                "objective.consistency": consistency or 0.0 if upright else consistency,
                "objective.upright": False if any_orientation else None,
                "objective.spread": spread,
                "objective.reconstruction": reconstruction,
                "views": 1 if upright else None,
                "batch": batch,
                "seed": seed,
                "intervals.checkpoint_seconds": None if save_every is None else 60 * save_every,
                "hardware.device": device,
            }
        )
        if not shapes and (saved is None or size is not None):
            config = config.changed({"model.image_size": image_side(data, config.image_model, size, config.budget)})
        choose_device(config.hardware.device)
    if processes > 1:
        with reported(console):
            try:
                raise typer.Exit(launch(processes))
            finally:
                console.show_cursor()  # a process that was killed has left it hidden
    kind = "shape" if shapes else "image"
    with settings_reported(console), reading_bar(console, kind=kind) as watch:
        torch.manual_seed(config.seed)  # whatever a network may draw: the same seed, the same training
        if shapes:
            setup = set_up_shapes(data, config, watch=watch)
        else:
            setup = set_up(data, config, balance=balance, angles=angles, watch=watch)
    if resume:
        begun = has_checkpoint(out)
        say(
            console,
            f"continuing the training in {out}" if begun else f"{out} contains no training yet: a new one begins",
        )
    _describe(console, setup, out, size)
    watched = isinstance(setup.evaluation, LookOnce)
    describe_later = partial(describe_plan, budget=setup.config.budget, watched=watched, kind=kind)
    with reported(console), TrainingBar(console, describe_later, kind=kind) as bar:
        result = run(
            setup.config, setup.data, setup.augmentation, folder=out, network=setup.network,
            evaluation=setup.evaluation, validation=setup.validation, resume=resume, other_images=other_images,
            watch=bar, tensorboard=tensorboard,
        )  # fmt: skip
    if is_first():
        _report(console, result, setup, out, as_json=as_json)


def _describe(console: Console, setup: Setup, out: Path, size: int | None) -> None:
    """Say what will be trained, and where it will be."""
    model = setup.config.model
    parameters, of_decoder = setup.network.parameter_counts()
    decoder = f" and {of_decoder:,} of a decoder" if of_decoder else ""
    console.print(
        f"{model.preset}: {parameters:,} parameters{decoder}; {setup.data!r}; {out}", markup=False, soft_wrap=True
    )
    config, data = setup.config, setup.data
    if data.note:
        say(console, data.note)
    if isinstance(data, Dataset) and (side := max(data.images.shape[-2:])) <= TINY:
        say(console, f"note: these images are only {side}x{side} pixels: there is hardly anything to see in them")
    kind = "shape" if isinstance(data, Shapes) else "image"
    say(console, describe_budget(config.budget, config.steps(len(data)), config.batch, data.different, kind=kind))
    if isinstance(model, Architecture) and size not in (None, model.image_size):
        say(
            console,
            f"--size {size} became {model.image_size}, the next side for which quarter turns map the blocks of "
            f"{model.preset} onto themselves",
        )


def _check_kind(
    data: str, shapes: bool, preset: str | None, any_orientation: bool, for_images: Mapping[str, object]
) -> None:
    """Raise if the preset or an option does not suit what the data are."""
    if not shapes:
        if (preset in POINT_PRESETS or any_orientation) and data not in NAMES and not Path(data).expanduser().exists():
            raise NotFoundError(
                f"{data} does not exist; expected a folder of shapes, or a data set of them: {', '.join(SHAPE_NAMES)}."
            )
        if preset in POINT_PRESETS:
            raise UsageError(f"the preset {preset!r} is for shapes, but {data} holds none, or more images than shapes.")
        if any_orientation:
            raise UsageError(f"--any-orientation is for shapes, but {data} holds none, or more images than shapes.")
        return
    if given := [name for name, value in for_images.items() if value is not None]:
        raise UsageError(
            f"{' and '.join(given)} cannot be used with shapes, only with images, but {data} holds shapes."
        )
    if preset is not None and preset not in POINT_PRESETS:
        raise UsageError(
            f"{data} holds shapes, for which there are the presets {', '.join(POINT_PRESETS)}, but not {preset!r}."
        )


def _report(console: Console, result: Result, setup: Setup, out: Path, *, as_json: bool) -> None:
    if not result.finished:
        say(
            console,
            f"stopped after {result.step:,} steps; everything is saved. Continue with --resume --out {out}",
        )
        raise typer.Exit(FAILED)
    data, model = setup.data, setup.config.model
    kind = "shape" if isinstance(data, Shapes) else "image"
    say(console, describe(result.figures, kind=kind))
    if result.confusion is not None:
        show_confusion(console, result.confusion, data.classes, kind=kind)
    say(console, f"model: {out / MODEL}")
    reducible = isinstance(model, Architecture) and model.image_size > SIDES[0]
    if advice := advise(result, data.different, reducible=reducible, kind=kind):
        say(console, advice)
    if as_json:
        typer.echo(json.dumps(json.loads((out / RESULT).read_text())))
