"""``equicaps export``: a model for use without Python, checked on the spot."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.console import Console

from equicaps.cli.errors import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import AsJson, Checkpoint, Data, Force, new_file, open_model, show_json, test_set, write
from equicaps.data import Dataset, embedded_digits, rotate
from equicaps.export import (
    ALLOWED,
    Agreement,
    compare,
    exported_bytes,
    notes_of,
    run_exported,
    run_onnx,
    to_onnx,
    to_torch_export,
)
from equicaps.pretrained import TurningModel
from equicaps.pretrained.images import to_network
from equicaps.training import TrainingError

Kind = Annotated[Literal["onnx", "torch"], typer.Option("--to", help="onnx, or torch for torch.export (.pt2).")]
Out = Annotated[Path | None, typer.Option("--out", help="File to write.  [default: NAME.onnx or NAME.pt2 here]")]
Count = Annotated[int, typer.Option("--images", min=1, max=1000, help="So many, turned at random, to compare on.")]


def export(
    checkpoint: Checkpoint,
    to: Kind = "onnx",
    out: Out = None,
    images: Count = 1000,
    data: Data = "digits",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Export a model for any batch size and compare it with the network at once.

    Input: "images", floats in [0, 1] of the network's size. Outputs: "scores", "agreements" and "poses" of every class.
    Nothing is written unless no label changes and scores (relative to the largest), agreements and the pose of the
    predicted class agree to 1e-5, the pose at least to three times what float32 rounds in the network itself.

    `equicaps export digits --to onnx`

    `equicaps export runs/mine --to torch --out mine.pt2`
    """
    console = Console(stderr=True)
    with settings_reported(console):
        model = open_model(checkpoint)
        chosen = test_set(data, model).some(images)
        target = new_file(out or Path(f"{model.card.name}{'.onnx' if to == 'onnx' else '.pt2'}"), force=force)
    with reported(console), console.status("exporting"):
        content, agreement = _made(model, to, chosen)
        if agreement.holds:
            write(target, content)
    if as_json:
        show_json({"file": str(target) if agreement.holds else None, "bytes": len(content), "format": to,
                   "data": chosen.name, **asdict(agreement), "allowed": ALLOWED, "holds": agreement.holds})  # fmt: skip
    else:
        _show(agreement, chosen, model.card.classes)
    if not agreement.holds:
        raise fail(console, f"the exported program differs from the network by more than {ALLOWED:g}.", FAILED)
    if not as_json:
        typer.echo(f"{target}: {len(content):,} bytes, any batch size")


def _made(model: TurningModel, to: str, data: Dataset) -> tuple[bytes, Agreement]:
    card, network = model.card, model.network
    try:
        if to == "onnx":
            content = to_onnx(network, notes_of(card.classes, card.zeros, card.frame, card.convention))
            program = run_onnx(content)
        else:
            exported = to_torch_export(network)
            content, program = exported_bytes(exported), run_exported(exported)
    except ImportError as error:
        raise TrainingError(str(error)) from error
    return content, compare(network, program, turned(model, data))


def turned_digits(model: TurningModel, count: int) -> torch.Tensor:
    """Smooth images with something to see in them, in the model's size and turned, whatever the model is about."""
    return turned(model, embedded_digits("test").take(slice(0, count)))


def turned(model: TurningModel, data: Dataset) -> torch.Tensor:
    """Images in the model's size and turned."""
    config, degrees = model.network.body.config, 360 * torch.rand(len(data), generator=torch.Generator().manual_seed(0))
    return to_network(rotate(data.images, degrees), config.in_channels, model.network.image_size, model.card.frame)


def _show(found: Agreement, data: Dataset, classes: tuple[str, ...]) -> None:
    typer.echo(
        f"{found.images:,} turned images of {data.name}, program against network: {found.labels_changed} labels "
        f"changed; largest differences: scores {found.scores:.1e} of the largest, agreements {found.agreements:.1e}, "
        f"pose of the predicted class {found.poses:.1e} (of any class {found.all_poses:.1e})"
    )
    typer.echo(f"against the network computed in float64: scores {found.precise[0]:.1e}, poses {found.precise[1]:.1e}")
    if data.classes != classes:
        typer.echo("those images are not of the model's classes: --data FOLDER compares on images that are")
