"""``equicaps export``: a model for use without Python, checked on the spot."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import AsJson, Checkpoint, Data, Force, new_file, show_json, write
from equicaps.data import Dataset
from equicaps.data.by_name import load_test_split
from equicaps.inference import load
from equicaps.inference.export import ALLOWED, Comparison, export_model

Kind = Annotated[Literal["onnx", "torch"], typer.Option("--to", help="onnx, or torch for torch.export (.pt2).")]
Out = Annotated[Path | None, typer.Option("--out", help="File to write.  [default: NAME.onnx or NAME.pt2 here]")]
Count = Annotated[int, typer.Option("--images", min=1, max=1000, help="Compare on this many randomly rotated images.")]


def export(
    checkpoint: Checkpoint,
    to: Kind = "onnx",
    out: Out = None,
    images: Count = 1000,
    data: Data = "digits",
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Export a model for any batch size and compare the result with the network.

    The input is "images", floats in [0, 1] of the network's size; the outputs are "scores", "agreements" and "poses" of
    every class. The file is written only if no label changes and scores (relative to the largest), agreements and the
    pose of the predicted class agree to 1e-5; the pose may differ by three times the network's own float32 rounding.

    `equicaps export digits --to onnx`

    `equicaps export runs/mine --to torch --out mine.pt2`
    """
    console = Console(stderr=True)
    with settings_reported(console):
        model = load(checkpoint)
        chosen = load_test_split(data, model.format).some(images)
        target = new_file(out or Path(f"{model.card.name}{'.onnx' if to == 'onnx' else '.pt2'}"), force=force)
    with reported(console), console.status("exporting"):
        content, comparison = export_model(model, to, chosen)
        if comparison.holds:
            write(target, content)
    if as_json:
        facts = {"file": str(target) if comparison.holds else None, "bytes": len(content), "format": to}
        verdict = {"data": chosen.name, "allowed": ALLOWED, "holds": comparison.holds}
        show_json({**facts, **verdict, **asdict(comparison)})
    else:
        _show(comparison, chosen, model.card.classes)
    if not comparison.holds:
        raise fail(
            console, f"the exported program differs from the network by more than {ALLOWED:g} and its rounding.", FAILED
        )
    if not as_json:
        typer.echo(f"{target}: {len(content):,} bytes, any batch size")


def _show(found: Comparison, data: Dataset, classes: tuple[str, ...]) -> None:
    typer.echo(
        f"{found.images:,} rotated images of {data.name}, program against network: {found.labels_changed} labels "
        f"changed; largest differences: scores {found.scores:.1e} of the largest, agreements {found.agreements:.1e}, "
        f"pose of the predicted class {found.poses:.1e} (of any class {found.all_poses:.1e})"
    )
    typer.echo(f"against the network computed in float64: scores {found.precise[0]:.1e}, poses {found.precise[1]:.1e}")
    if data.classes != classes:
        typer.echo("these images are not of the model's classes; --data FOLDER compares on images that are")
