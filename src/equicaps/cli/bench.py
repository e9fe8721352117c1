"""``equicaps bench``: how fast a model is on this machine."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from equicaps.cli.reporting import reported, settings_reported
from equicaps.cli.terminal import AsJson, show_json
from equicaps.data import embedded_digits
from equicaps.errors import MissingPackageError
from equicaps.inference import Card, PoseModel, load
from equicaps.inference.export import rotated_images
from equicaps.inference.speed import measure
from equicaps.models import PRESETS, Architecture
from equicaps.training.log import provenance

Name = Annotated[str, typer.Argument(help=f"A model (name, file or folder), or a preset: {', '.join(PRESETS)}.")]
Batch = Annotated[int, typer.Option(min=2, max=1000, help="Images in a batch.")]
Seconds = Annotated[float, typer.Option(min=0.01, help="CPU-seconds for each line.")]
Onnx = Annotated[bool, typer.Option("--onnx/--no-onnx", help="Also export it and measure ONNX Runtime.")]


def bench(
    model: Name = "steerable", batch: Batch = 64, seconds: Seconds = 2.0, onnx: Onnx = True, as_json: AsJson = False
) -> None:
    """Measure images per CPU-second of a model, on one thread.

    CPU-seconds rather than wall time, so that other programs hardly disturb it. Run it with OMP_NUM_THREADS=1.

    `equicaps bench digits`

    `equicaps bench paper --no-onnx --json`
    """
    console = Console(stderr=True)
    with settings_reported(console):
        trained = _untrained(model) if model in PRESETS else load(model)
        images = rotated_images(trained, embedded_digits("test").take(slice(0, batch)))
    with reported(console), console.status("") as status:
        try:
            found = measure(
                trained.network, images, seconds=seconds, onnx=onnx,
                watch=lambda what: status.update(f"measuring: {what}"),
            )  # fmt: skip
        except MissingPackageError as error:
            raise MissingPackageError(f"{error} Or leave it out with --no-onnx.") from error
    if as_json:
        rows = [speed._asdict() for speed in found]
        show_json(
            {"model": model, "image_size": trained.network.image_size, "threads": 1, "speeds": rows, **provenance()}
        )
        return
    size = trained.network.image_size
    table = Table(
        "", "batch", "images per CPU-second", title=f"{model}, {size}x{size}, one thread", title_justify="left"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for speed in found:
        table.add_row(speed.what, str(speed.batch), f"{speed.images_per_cpu_second:,.0f}")
    Console().print(table, highlight=False)


def _untrained(preset: str) -> PoseModel:
    network = Architecture(preset).build(seed=0)
    classes = tuple(map(str, range(network.body.config.num_classes)))
    return PoseModel(network, Card(preset, "", "", classes, (0.0,) * len(classes), frame=28))
