"""``equicaps train``: train a network, and resume at any moment."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console

from equicaps.cli.processes import first_process_reports, is_first, launch
from equicaps.cli.progress import TrainingBar, describe
from equicaps.cli.reporting import FAILED, reported, settings_reported
from equicaps.errors import UsageError
from equicaps.inference.model_files import MODEL
from equicaps.training import Budget, Intervals, Result, TrainConfig
from equicaps.training import train as run
from equicaps.training.checkpoint import has_checkpoint, saved_config
from equicaps.training.distributed import choose_device
from equicaps.training.log import RESULT
from equicaps.training.setup import PIXELS_PER_SECOND, Setup, image_side, set_up

DEFAULTS = TrainConfig(Budget(minutes=2.0), intervals=Intervals(evaluations=5, evaluation_images=500))
"""The settings that no option changes."""

FEW_VIEWS, ENOUGH_ACCURACY = 20, 90.0
"""A training was too short if it saw each image less often and, in percent, classified fewer views correctly."""


@first_process_reports()
def train(
    data: str,
    preset: str | None,
    out: Path | None,
    resume: bool,
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
        out = out or Path("runs") / f"{Path(data).resolve().name}-{preset or DEFAULTS.model.preset}"
        if has_checkpoint(out) and not resume:
            raise UsageError(
                f"{out} already contains a training: continue it with --resume, or name a new folder with --out."
            )
        saved = saved_config(out) if resume else None
        budget = {"minutes": minutes, "epochs": epochs, "steps": steps}
        config = replace(saved or DEFAULTS, intervals=DEFAULTS.intervals, hardware=DEFAULTS.hardware).changed(
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
                "objective.spread": spread,
                "objective.reconstruction": reconstruction,
                "views": 1 if upright else None,
                "batch": batch,
                "seed": seed,
                "intervals.checkpoint_seconds": None if save_every is None else 60 * save_every,
                "hardware.device": device,
            }
        )
        if saved is None or size is not None:
            config = config.changed({"model.image_size": image_side(data, config.model, size, config.budget)})
        choose_device(config.hardware.device)
    if processes > 1:
        with reported(console):
            try:
                raise typer.Exit(launch(processes))
            finally:
                console.show_cursor()  # a process that was killed has left it hidden
    with settings_reported(console):
        setup = set_up(data, config, balance=balance, angles=angles)
    _describe(console, setup, out, size)
    with reported(console), TrainingBar(console) as bar:
        result = run(
            setup.config, setup.data, setup.augmentation, folder=out, network=setup.network,
            evaluation=setup.evaluation, resume=resume, watch=bar, tensorboard=tensorboard,
        )  # fmt: skip
    if is_first():
        _report(console, result, out, remark=_if_short(result, len(setup.data), bar.accuracy), as_json=as_json)


def _describe(console: Console, setup: Setup, out: Path, size: int | None) -> None:
    """Say what will be trained, and where it will be."""
    model = setup.config.model
    parameters, of_decoder = setup.network.parameter_counts()
    decoder = f" and {of_decoder:,} of a decoder" if of_decoder else ""
    console.print(
        f"{model.preset}: {parameters:,} parameters{decoder}; {setup.data!r}; {out}", markup=False, soft_wrap=True
    )
    if setup.data.note:
        _say(console, setup.data.note)
    minutes = setup.config.budget.minutes
    if minutes is not None and model.preset == "steerable":
        views = 60 * minutes * PIXELS_PER_SECOND / model.image_size**2 / len(setup.data)
        _say(console, f"in {minutes:g} CPU-minutes each training image will be seen about {views:.0f} times")
    if size not in (None, model.image_size):
        _say(
            console,
            f"--size {size} became {model.image_size}, the next side for which quarter turns map the blocks of "
            f"{model.preset} onto themselves",
        )


def _report(console: Console, result: Result, out: Path, *, remark: str, as_json: bool) -> None:
    if not result.finished:
        _say(
            console,
            f"stopped after {result.step:,} steps; everything is saved. Continue with --resume --out {out}",
        )
        raise typer.Exit(FAILED)
    _say(console, describe(result.figures))
    _say(console, f"model: {out / MODEL}")
    if remark:
        _say(console, remark)
    if as_json:
        typer.echo(json.dumps(json.loads((out / RESULT).read_text())))


def _if_short(result: Result, images: int, accuracy: float | None) -> str:
    """Advice after a training that saw each image only a few times and does not classify even those correctly."""
    seen = result.images / images
    if accuracy is None or accuracy >= ENOUGH_ACCURACY or seen >= FEW_VIEWS:
        return ""
    minutes = math.ceil(result.cpu_minutes * FEW_VIEWS / seen)
    return (
        f"note: this training was short: it saw each of its {images:,} images about {seen:.1f} times, and classified "
        f"{accuracy:.0f} % of the last ones correctly. Train longer in a new folder, for example with "
        f"--minutes {minutes}, or on smaller images with --size."
    )


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)
