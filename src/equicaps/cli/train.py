"""``equicaps train``: a network from data, resumable at any moment."""

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from equicaps.cli.progress import TrainingBar, describe
from equicaps.cli.reporting import FAILED, reported, settings_reported
from equicaps.data import Dataset, embedded_digits, load_folder, load_galaxies, load_mnist
from equicaps.errors import UsageError
from equicaps.images import Augmentation
from equicaps.inference.model_files import MODEL
from equicaps.models import PRESETS
from equicaps.models.sizes import legal_sizes
from equicaps.training import AnyAngle, Budget, Result, TrainConfig
from equicaps.training import train as run
from equicaps.training.checkpoint import has_checkpoint, load_checkpoint
from equicaps.training.distributed import choose_device
from equicaps.training.log import RESULT

FOLDER_SIZE = 64
SIZES = {"digits": 32, "mnist": 32, "galaxies": 32}
"""Data sets by name, and the sides to which their images are padded."""

OFTEN, KNOWN = 20, 90.0
"""Views of each training image, and percent of them told rightly, below which a training was too short."""

Schedule = Literal["one_cycle", "step"]
Out = Annotated[Path | None, typer.Option("--out", help="Folder of the run; by default runs/DATA-PRESET.")]


def train(
    data: Annotated[str, typer.Argument(help="digits (in the package), mnist, galaxies, or a FOLDER of classes.")],
    preset: Annotated[str | None, typer.Option(help=f"{', '.join(PRESETS)}.", show_default="steerable")] = None,
    out: Out = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in --out, if there is one.")] = False,
    minutes: Annotated[float | None, typer.Option(help="CPU-minutes over all processes.", show_default="2")] = None,
    epochs: Annotated[float | None, typer.Option(help="Instead of minutes.")] = None,
    steps: Annotated[int | None, typer.Option(help="Instead of minutes.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="On this machine, one thread each.")] = 1,
    seed: Annotated[int | None, typer.Option(help="Of weights, order and augmentation.", show_default="0")] = None,
    batch: Annotated[int | None, typer.Option(help="Views in a step, over all processes.", show_default="64")] = None,
    rate: Annotated[float | None, typer.Option(help="Largest learning rate.", show_default="0.006")] = None,
    schedule: Annotated[Schedule | None, typer.Option(help="Of the rate.", show_default="one_cycle")] = None,
    decay: Annotated[float | None, typer.Option(help="Weight decay.", show_default="0.001")] = None,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradient.", show_default="none")] = None,
    ema: Annotated[float | None, typer.Option(help="Average weights with this decay, e.g. 0.999.")] = None,
    consistency: Annotated[float | None, typer.Option(help="Weight of pose consistency.", show_default="0.3")] = None,
    spread: Annotated[float | None, typer.Option(help="Weight of the spread loss.", show_default="0.3")] = None,
    reconstruction: Annotated[float | None, typer.Option(help="Weight of a decoder's loss.", show_default="0")] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Train on images as they are, not turned.")] = False,
    balance: Annotated[bool, typer.Option("--balance", help="Repeat the images of rarer classes.")] = False,
    size: Annotated[
        int | None, typer.Option(min=1, help="Side of the images.", show_default="32, folders 64")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    save_every: Annotated[float, typer.Option(help="Minutes between checkpoints.")] = 4.0,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write logs for TensorBoard.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:  # fmt: skip
    """Train a network. Ctrl-C saves; --resume continues.

    `equicaps train digits --minutes 2` is a first training in two minutes.
    """
    console = Console(stderr=True, quiet=os.environ.get("RANK", "0") != "0")
    with settings_reported(console):
        named = data in SIZES
        out = out or Path("runs") / f"{data if named else Path(data).resolve().name}-{preset or 'steerable'}"
        if has_checkpoint(out) and not resume:
            raise UsageError(f"{out} holds a training: continue it with --resume, or name a new folder with --out.")
        saved = _saved(out) if resume else None
        config = saved or TrainConfig(Budget(minutes=2.0))
        chosen = _changed(config.model, preset=preset).preset
        side = _next_legal(size, chosen) if size else saved.model.image_size if saved else SIZES.get(data, FOLDER_SIZE)
        training, test = _load(data, side)
        if balance:
            training = training.balanced()
        model = {"preset": preset, "decoder": bool(reconstruction) or None, "image_size": side,
                 "num_classes": len(training.classes), "in_channels": training.images.shape[1]}  # fmt: skip
        optimiser = {"rate": rate, "schedule": schedule, "weight_decay": decay, "clip": clip, "ema": ema}
        weights = {"consistency": consistency, "spread": spread, "reconstruction": reconstruction}
        views: int | None = None
        if upright:
            views, weights["consistency"] = 1, consistency or 0.0
        budgeted = any(value is not None for value in (minutes, epochs, steps))
        config = _changed(
            config,
            budget=Budget(steps, epochs, minutes) if budgeted else config.budget,
            model=_changed(config.model, **model),
            optimiser=_changed(config.optimiser, **optimiser),
            objective=_changed(config.objective, **weights),
            views=views,
            batch=batch,
            seed=seed,
            intervals=replace(
                config.intervals, checkpoint_seconds=60 * save_every, evaluations=5, evaluation_images=500
            ),
            hardware=replace(config.hardware, processes=processes, device=device),
        )
        choose_device(device)
        network = config.network()
        augmentation = Augmentation(side, rotation=180.0 if config.views == 2 else 0.0)
    parameters, of_decoder = network.parameter_counts()
    decoder = f" and {of_decoder:,} of a decoder" if of_decoder else ""
    console.print(
        f"{config.model.preset}: {parameters:,} parameters{decoder}; {training!r}; {out}", markup=False, soft_wrap=True
    )
    if training.note:
        _say(console, training.note)
    if size not in (None, side):
        _say(console, f"--size {size} became {side}, the next side that quarter turns map onto itself in {chosen}")
    with reported(console), TrainingBar(console) as bar:
        result = run(
            config, training, augmentation, folder=out, network=network, evaluation=AnyAngle(test, side),
            resume=resume, watch=bar, tensorboard=tensorboard,
        )  # fmt: skip
    _report(console, result, out, as_json, remark=_if_short(result, len(training), bar.accuracy))


def _report(console: Console, result: Result, out: Path, as_json: bool, *, remark: str) -> None:
    if not result.finished:
        hint = f"stopped after {result.step:,} steps; everything is saved. Continue with --resume --out {out}"
        _say(console, hint)
        raise typer.Exit(FAILED)
    if console.quiet:  # not the first process: it has nothing to tell
        return
    _say(console, describe(result.figures))
    _say(console, f"model: {out / MODEL}")
    if remark:
        _say(console, remark)
    if as_json:
        typer.echo(json.dumps(json.loads((out / RESULT).read_text())))


def _if_short(result: Result, images: int, accuracy: float | None) -> str:
    """What to do after a training that saw its images a few times only, and does not even know those."""
    seen = result.images / images
    if accuracy is None or accuracy >= KNOWN or seen >= OFTEN:
        return ""
    minutes = math.ceil(result.cpu_minutes * OFTEN / seen)
    return (
        f"note: this training was short: each of its {images:,} images was seen about {seen:.1f} times, and "
        f"{accuracy:.0f} % of the last ones were told rightly. Train longer in a new folder, for example "
        f"--minutes {minutes}, or on smaller images with --size."
    )


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _load(data: str, size: int) -> tuple[Dataset, Dataset]:
    if data == "digits":
        return embedded_digits("train"), embedded_digits("test")
    if data == "mnist":
        return load_mnist("train"), load_mnist("test")
    if data == "galaxies":
        return load_galaxies("train"), load_galaxies("valid")  # the test split is for `equicaps audit`
    if not Path(data).is_dir():
        raise UsageError(f"{data!r} is neither a data set ({', '.join(SIZES)}) nor a folder of images.")
    splits = load_folder(data, size=size)
    return splits.train, splits.test


def _next_legal(side: int, preset: str) -> int:
    """The side itself, or the first above it whose blocks a quarter turn maps onto themselves."""
    make, options = PRESETS[preset]
    return legal_sizes(make(**options).grid, side)[-1]  # type: ignore[arg-type] # bools and an order


def _saved(out: Path) -> TrainConfig | None:
    """What a run that is to be resumed was started with."""
    return TrainConfig.from_dict(load_checkpoint(out)[1]["config"]) if has_checkpoint(out) else None


def _changed(settings: Any, **changes: Any) -> Any:
    """The settings with those changes that were asked for."""
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})
