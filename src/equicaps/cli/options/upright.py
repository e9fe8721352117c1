"""``equicaps upright``: images rotated to the upright position of their class."""

from pathlib import Path
from typing import Annotated

import typer

from equicaps.cli.options import AsJson, Force, ModelOption

Images = Annotated[list[Path], typer.Argument(help="Images or shapes, whichever the model takes, or folders of them.")]
Out = Annotated[Path, typer.Option("--out", help="Folder for the results; subfolders of an input folder are kept.")]
Tolerance = Annotated[
    float, typer.Option(min=0.0, max=45.0, help="Treat angles this close to a multiple of 90 degrees as that multiple.")
]
Quarters = Annotated[
    bool, typer.Option("--quarter-turns", help="Rotate by multiples of 90 degrees only, without loss.")
]
Expand = Annotated[bool, typer.Option("--expand", help="Enlarge the frame so that no corner is cut off.")]


def upright(
    images: Images,
    out: Out,
    model: ModelOption = "digits",
    tolerance: Tolerance = 1.0,
    quarter_turns: Quarters = False,
    expand: Expand = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Rotate images upright by their predicted pose, with a contact sheet of before and after.

    Writes PNG (TIFF where PNG cannot hold the image) in the image's own mode and resolution. Rotations by multiples of
    90 degrees only move pixels. An image without a pose is copied unchanged. Inputs are never overwritten.

    `equicaps upright scans/ --out upright --model runs/mine`

    `equicaps upright page.png --out upright --quarter-turns`

    With a model of shapes, meshes are written as PLY and points as XYZ, in their own coordinates.

    `equicaps upright chair.ply --out upright --model runs/shapes`
    """
