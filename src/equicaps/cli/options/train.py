"""``equicaps train``: train a network, and resume at any moment."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from equicaps.cli.options import DATA, POINT_PRESETS, PRESETS


def _option(text: str, default: object = None) -> Any:
    """An option that is None unless it is given; the help shows which default then applies."""
    return typer.Option(help=text, show_default=False if default is None else str(default))


def train(
    data: Annotated[str, typer.Argument(help=DATA)],
    preset: Annotated[
        str | None, _option(f"The network: {PRESETS}; for shapes {POINT_PRESETS}.", "steerable, for shapes points")
    ] = None,
    out: Annotated[Path | None, _option("The folder to write to.", "runs/DATA-PRESET")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the training in --out, if there is one.")] = False,
    other_images: Annotated[
        bool, typer.Option("--other-images", help="Continue even though the images have changed since.")
    ] = False,
    minutes: Annotated[float | None, _option("CPU-minutes, over all processes.", "as many as help, at most 10")] = None,
    epochs: Annotated[float | None, _option("Epochs, instead of minutes.")] = None,
    steps: Annotated[int | None, _option("Steps, instead of minutes.")] = None,
    processes: Annotated[int, typer.Option(min=1, help="Processes on this machine, one thread each.")] = 1,
    seed: Annotated[int | None, _option("The seed of weights, order and augmentation.", 0)] = None,
    batch: Annotated[int | None, _option("Views in a step, over all processes.", "64, for shapes 32")] = None,
    rate: Annotated[float | None, _option("The largest learning rate.", "0.006, for shapes 0.004")] = None,
    schedule: Annotated[Literal["one_cycle", "step"] | None, _option("How the rate changes.", "one_cycle")] = None,
    decay: Annotated[float | None, _option("The weight decay.", "0.001, for shapes 0.01")] = None,
    clip: Annotated[float | None, _option("Clip the gradient to this norm.", "no clipping, for shapes 1.0")] = None,
    ema: Annotated[float | None, _option("Average the weights with this decay, for instance 0.999.")] = None,
    consistency: Annotated[float | None, _option("The weight of pose consistency.", "0.3, for shapes 1.0")] = None,
    spread: Annotated[float | None, _option("The weight of the spread loss.", 0.3)] = None,
    reconstruction: Annotated[float | None, _option("The weight of a decoder's loss.", 0.0)] = None,
    mirror: Annotated[
        Literal["distinguish", "ignore"] | None,
        _option("Whether an object and its mirror image may be different classes.", "distinguish"),
    ] = None,
    angles: Annotated[
        Path | None,
        _option("A CSV file (file,angle) of known angles: degrees from upright, counter-clockwise, empty if unknown."),
    ] = None,
    upright: Annotated[bool, typer.Option("--upright", help="Train on the images without rotating them.")] = False,
    any_orientation: Annotated[
        bool,
        typer.Option("--any-orientation", help="The training shapes of a class do not all stand in the same way."),
    ] = False,
    balance: Annotated[
        bool, typer.Option("--balance", help="Repeat the images of rarer classes until all are equally frequent.")
    ] = False,
    size: Annotated[
        int | None,
        typer.Option(min=1, help="The side of the images in pixels.", show_default="32, for folders near theirs"),
    ] = None,
    device: Annotated[str | None, _option("auto, cpu, cuda or mps.", "auto")] = None,
    save_every: Annotated[float | None, _option("Minutes between checkpoints.", 4.0)] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write logs for TensorBoard.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a network. Ctrl-C saves; --resume continues.

    `equicaps train digits --minutes 2` is a first training in two minutes. Without minutes, epochs or steps it trains
    as long as that helps, at most for 10 CPU-minutes.

    `equicaps train parts/ --angles angles.csv` learns true angles from some images. A CSV file as DATA has the columns
    file, label and, where angles are known, angle.

    `equicaps train shapes/` trains on three-dimensional shapes, if the files of the folder are meshes or points. They
    need not be rotated: the answers do not change under any rotation of space. All shapes of a class should stand in
    the same way, which is then what predicted rotations start from; otherwise add --any-orientation.
    """
