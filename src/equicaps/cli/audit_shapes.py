"""``equicaps audit`` with a model of shapes: what random rotations change."""

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from equicaps.cli.progress import reading_bar
from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import new_file, show_json, write
from equicaps.data.shapes_by_name import SHAPE_NAMES, load_test_shapes
from equicaps.errors import UsageError
from equicaps.inference import PointModel
from equicaps.inference.point_audit import PointCertificate, audit_points


def audit_shapes(
    console: Console, model: PointModel, data: str | None, count: int, out: Path | None, force: bool, as_json: bool
) -> None:
    """Measure a model on shapes, write and print what was found; fails if the exact part does not hold."""
    with settings_reported(console):
        if data is None:
            raise UsageError(
                f"the model takes shapes: name a folder of shapes, or {' or '.join(SHAPE_NAMES)}, with --data."
            )
        with reading_bar(console, kind="shape") as watch:
            chosen = load_test_shapes(data, watch=watch).some(count)
        target = new_file(out / "audit.json", force=force) if out else None
    with reported(console):
        with console.status("") as status:
            found = audit_points(model, chosen, watch=lambda what: status.update(f"measuring: {what}"))
        if target:
            write(target, (json.dumps(found.to_dict(), indent=1) + "\n").encode())
    if as_json:
        show_json(found.to_dict())
    else:
        _show(found, target)
    if not found.holds:
        raise fail(console, f"not exact: {'; '.join(found.failures)}.", FAILED)


def _show(found: PointCertificate, target: Path | None) -> None:
    console, exact = Console(), found.exact
    verdict = "holds" if found.holds else "FAILS"
    table = Table(
        "any rotation", "predictions changed", "scores", "agreements", "poses", "poses defined",
        title=f"{found.model}, {found.data}: the exact part {verdict}", title_justify="left",
        caption=f"{found.shapes:,} shapes, each compared with itself after {found.rotations} random rotations of space",
        caption_justify="left",
    )  # fmt: skip
    figures = [f"{value:.1e}" for value in (exact.scores, exact.activations, exact.poses)]
    table.add_row("answer", str(exact.predictions_changed), *figures, f"{exact.poses_defined:.0f} %")
    console.print(table, highlight=False)
    table = Table(
        "accuracy", "by agreement", "pose error mean", "median", title=f"{found.shapes:,} shapes", title_justify="left",
        caption="pose error: from a shape to the same one with other points, rotated at random; where both classes are "
        "right", caption_justify="left",
    )  # fmt: skip
    errors = ("–" if error is None else f"{error:.1f}°" for error in (found.pose_error_mean, found.pose_error_median))
    table.add_row(f"{found.accuracy:.1f} %", f"{found.agreement_accuracy:.1f} %", *errors)
    console.print(table, highlight=False)
    if target:
        typer.echo(f"wrote {target}")
