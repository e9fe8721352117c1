"""``equicaps export``: a model for use without Python, checked on the spot."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console

from equicaps.cli.progress import reading_bar
from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import new_file, show_json, write
from equicaps.data import Dataset
from equicaps.data.by_name import load_test_split
from equicaps.inference import load
from equicaps.inference.export import ALLOWED, Comparison, export_model


def export(
    checkpoint: str,
    to: Literal["onnx", "torch"],
    out: Path | None,
    images: int,
    data: str,
    force: bool,
    as_json: bool,
) -> None:
    """Export a model, compare the program with the network, and write it if they agree."""
    console = Console(stderr=True)
    with settings_reported(console):
        model = load(checkpoint)
        with reading_bar(console) as watch:
            chosen = load_test_split(data, model.format, watch=watch).some(images)
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
