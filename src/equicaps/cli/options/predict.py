"""``equicaps predict``: the class and angle of images, or the class and rotation of shapes."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from equicaps.cli.options import AsJson, Force, ModelOption

Images = Annotated[
    list[str],
    typer.Argument(
        help="Images or shapes, whichever the model takes, or folders of them; with --out also s3://BUCKET/..."
    ),
]
Save = Annotated[Path | None, typer.Option("--save", help="Folder for pictures with the pose drawn as an arrow.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", help="File for the answers (.csv, .jsonl or .parquet), for any number of images or shapes."),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Threads that decode, or processes on Ray.", show_default="4, on Ray one for each CPU"),
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option(help="With --out: where to compute; ray takes one machine or many.")
]
Address = Annotated[
    str | None, typer.Option(help="With --engine ray: the address of a cluster.", show_default="this machine alone")
]


def predict(
    images: Images,
    model: ModelOption = "digits",
    save: Save = None,
    out: Out = None,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Classify images and read their angles, or shapes and their rotations in space.

    The angle is in degrees, counter-clockwise as you see the image, from the upright position of the class. If you
    rotate the image by 90 degrees, the angle follows exactly, up to rounding; in between it is approximate. "By
    agreement" is the capsules' own answer: the class whose votes agree most.

    With --out, a killed run continues where it stopped when you run the same command again.

    `equicaps predict seven.png --save arrows`

    `equicaps predict scans/ --model runs/mine --json > answers.json`

    `equicaps predict many_scans/ --out answers.parquet`

    `equicaps predict chair.ply --model runs/shapes --save pictures`
    """
