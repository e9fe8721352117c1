"""``equicaps audit``: the certificate of a model."""

import json
from pathlib import Path
from statistics import fmean

import typer
from rich.console import Console
from rich.table import Table

from equicaps.cli.audit_shapes import audit_shapes
from equicaps.cli.options import DEFAULT_DATA
from equicaps.cli.progress import describe_symmetric, reading_bar
from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import new_file, show_json, write
from equicaps.data.by_name import load_test_split
from equicaps.drawing import plot_certificate, require_plots
from equicaps.errors import MissingPackageError, UsageError
from equicaps.inference import PointModel, load
from equicaps.inference.audit import STEP, Certificate
from equicaps.inference.audit import audit as measure
from equicaps.metrics import Exactness


def audit(
    checkpoint: str, data: str | None, images: int, step: int, out: Path | None, force: bool, as_json: bool
) -> None:
    """Measure a model on images or shapes, write and print what was found; fails if the exact part does not hold."""
    console = Console(stderr=True)
    with settings_reported(console):
        model = load(checkpoint)
        if isinstance(model, PointModel) and step != STEP:
            raise UsageError("--step is for images, but the model takes shapes, which are rotated at random.")
    if isinstance(model, PointModel):
        audit_shapes(console, model, data, images, out, force, as_json)
        return
    with settings_reported(console):
        with reading_bar(console) as watch:
            chosen = load_test_split(DEFAULT_DATA if data is None else data, model.format, watch=watch).some(images)
        targets = [new_file(out / name, force=force) for name in ("audit.json", "audit.png")] if out else []
        if targets:
            try:
                require_plots()
            except MissingPackageError as error:
                raise MissingPackageError(f"{error} Or leave out --out.") from error
    with reported(console):
        with console.status("") as status:
            certificate = measure(model, chosen, step=step, watch=lambda what: status.update(f"measuring: {what}"))
        if targets:
            write(targets[0], (json.dumps(certificate.to_dict(), indent=1) + "\n").encode())
            write(targets[1], plot_certificate(certificate))
    if as_json:
        show_json(certificate.to_dict())
    else:
        _show(certificate, targets)
    if not certificate.holds:
        raise fail(console, f"not exact: {'; '.join(certificate.failures)}.", FAILED)


def _show(certificate: Certificate, targets: list[Path]) -> None:
    console, exact = Console(), certificate.exact
    verdict = "holds" if certificate.holds else "FAILS"
    count = certificate.images
    table = Table(
        "quarter turns", "predictions changed", "scores", "agreements", "poses", "poses defined",
        title=f"{certificate.model}, {certificate.data}: the exact part {verdict}", title_justify="left",
        caption=f"{count:,} images as given and the same {count:,} rotated by random angles, each compared with itself "
        "rotated by 90, 180 and 270 degrees; the layers on some of them", caption_justify="left",
    )  # fmt: skip
    _add_row(table, f"answer, {count:,} + {exact.images - count:,} images", exact)
    if certificate.exact_mirrored:
        _add_row(table, "answer, mirrored, then rotated", certificate.exact_mirrored)
    for number, layer in enumerate(certificate.exact_layers, 1):
        table.add_row(f"layer {number}", "", "", f"{layer.activations:.1e}", f"{layer.poses:.1e}")
    console.print(table, highlight=False)
    symmetric = describe_symmetric(certificate.images_modulo_period, certificate.images_of_round_classes)
    table = Table("rotated by", "accuracy", "by agreement", "pose error mean", "median", title=(
        f"any angle, {certificate.images:,} images{symmetric}"), title_justify="left")  # fmt: skip
    for entry in certificate.angles:
        accuracies = (f"{entry.accuracy:.1f} %", f"{entry.agreement_accuracy:.1f} %")
        errors = ("–" if error is None else f"{error:.1f}°" for error in entry[-2:])
        table.add_row(f"{entry.degrees}°", *accuracies, *errors)
    console.print(table, highlight=False)
    table = Table("layer", "activations", "poses", "control", title="layers at any angle, mean relative error",
                  title_justify="left", caption="control: poses not rotated", caption_justify="left")  # fmt: skip
    for number in sorted({row.layer for row in certificate.layers}):
        rows = [row for row in certificate.layers if row.layer == number]
        table.add_row(str(number), *(f"{fmean(row[k] for row in rows):.3f}" for k in (2, 3, 4)))
    if certificate.layers:
        console.print(table, highlight=False)
    for target in targets:
        typer.echo(f"wrote {target}")


def _add_row(table: Table, name: str, exact: Exactness) -> None:
    figures = [f"{value:.1e}" for value in (exact.scores, exact.activations, exact.poses)]
    table.add_row(name, str(exact.predictions_changed), *figures, f"{exact.poses_defined:.0f} %")
