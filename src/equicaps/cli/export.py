"""``equicaps export``: a model for use without Python, checked on the spot."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console

from equicaps.cli.options import DEFAULT_DATA
from equicaps.cli.progress import reading_bar
from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import new_file, show_json, write
from equicaps.data import Dataset, Shapes, solid_shapes
from equicaps.data.by_name import load_test_split
from equicaps.data.reduced import Watch
from equicaps.data.shapes_by_name import load_test_shapes
from equicaps.inference import PointModel, load
from equicaps.inference.export import ALLOWED, Comparison, check_packages, export_model
from equicaps.inference.point_export import export_points, fewest_points

SOLIDS = 50
"""How many generated solids a model of shapes is compared on, if no data are named."""


def export(
    checkpoint: str,
    to: Literal["onnx", "torch"],
    out: Path | None,
    images: int,
    data: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Export a model, compare the program with the network, and write it if they agree."""
    console = Console(stderr=True)
    with settings_reported(console):
        check_packages(to)
        model = load(checkpoint)
        with reading_bar(console, kind="shape" if isinstance(model, PointModel) else "image") as watch:
            if isinstance(model, PointModel):
                chosen: Dataset | Shapes = shapes_for(data, images, watch)
            else:
                chosen = load_test_split(DEFAULT_DATA if data is None else data, model.format, watch=watch).some(images)
        target = new_file(out or Path(f"{model.card.name}{'.onnx' if to == 'onnx' else '.pt2'}"), force=force)
    with reported(console), console.status("exporting"):
        if isinstance(model, PointModel):
            assert isinstance(chosen, Shapes)
            content, comparison = export_points(model, to, chosen)
        else:
            assert isinstance(chosen, Dataset)
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
        fewest = f", {fewest_points(model.network)} points or more" if isinstance(model, PointModel) else ""
        typer.echo(f"{target}: {len(content):,} bytes, any batch size{fewest}")


def shapes_for(data: str | None, count: int, watch: Watch) -> Shapes:
    """The shapes to compare on; solids if no data are named."""
    return solid_shapes(min(count, SOLIDS)) if data is None else load_test_shapes(data, watch=watch).some(count)


def _show(found: Comparison, data: Dataset | Shapes, classes: tuple[str, ...]) -> None:
    kind = "shapes" if isinstance(data, Shapes) else "images"
    typer.echo(
        f"{found.images:,} rotated {kind} of {data.name}, program against network: {found.labels_changed} labels "
        f"changed; largest differences: scores {found.scores:.1e} of the largest, agreements {found.agreements:.1e}, "
        f"pose of the predicted class {found.poses:.1e} (of any class {found.all_poses:.1e})"
    )
    typer.echo(f"against the network computed in float64: scores {found.precise[0]:.1e}, poses {found.precise[1]:.1e}")
    if data.classes != classes:
        typer.echo(f"these {kind} are not of the model's classes; --data FOLDER compares on {kind} that are")
