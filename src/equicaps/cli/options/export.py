"""``equicaps export``: a model for use without Python, checked on the spot."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from equicaps.cli.options import DATA, DEFAULT_DATA, AsJson, Checkpoint, Force

Kind = Annotated[Literal["onnx", "torch"], typer.Option("--to", help="onnx, or torch for torch.export (.pt2).")]
Out = Annotated[Path | None, typer.Option("--out", help="File to write.  [default: NAME.onnx or NAME.pt2 here]")]
Count = Annotated[
    int, typer.Option("--images", min=1, max=1000, help="Compare on this many images or shapes, rotated at random.")
]

Data = Annotated[str | None, typer.Option(help=DATA, show_default=f"{DEFAULT_DATA}; for shapes generated solids")]


def export(
    checkpoint: Checkpoint,
    to: Kind = "onnx",
    out: Out = None,
    images: Count = 1000,
    data: Data = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Export a model for any batch size and compare the result with the network.

    The input is "images", floats in [0, 1] of the network's size; the outputs are "scores", "agreements" and "poses" of
    every class. The file is written only if no label changes and scores (relative to the largest), agreements and the
    pose of the predicted class agree to 1e-5, or to three times the network's own float32 rounding if that is larger.

    The inputs of a model of shapes are "points" (batch, n, 3) and "weights" (batch, n), 1 or, for padding, 0.

    `equicaps export digits --to onnx`

    `equicaps export runs/mine --to torch --out mine.pt2`
    """
