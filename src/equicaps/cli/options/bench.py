"""``equicaps bench``: how fast a model is on this machine."""

from typing import Annotated

import typer

from equicaps.cli.options import PRESETS, AsJson

Name = Annotated[str, typer.Argument(help=f"A model (name, file or folder), or a preset: {PRESETS}.")]
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
