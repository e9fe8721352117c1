"""``equicaps bench``: how fast a model is on this machine."""

from rich.console import Console
from rich.table import Table

from equicaps.cli.reporting import reported, settings_reported
from equicaps.cli.terminal import show_json
from equicaps.data import embedded_digits
from equicaps.errors import MissingPackageError
from equicaps.inference import Card, PoseModel, load_image_model
from equicaps.inference.export import rotated_images
from equicaps.inference.speed import measure
from equicaps.models import PRESETS, Architecture
from equicaps.training.log import provenance


def bench(model: str, batch: int, seconds: float, onnx: bool, as_json: bool) -> None:
    """Measure the speed of a model, or of a preset with random weights."""
    console = Console(stderr=True)
    with settings_reported(console):
        trained = _untrained(model) if model in PRESETS else load_image_model(model)
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
