"""``equicaps audit``: the certificate of a model."""

from pathlib import Path
from typing import Annotated

import typer

from equicaps.cli.options import AsJson, Checkpoint, Data, Force

Count = Annotated[
    int, typer.Option("--images", min=1, help="Use at most this many images or shapes, spread over the set.")
]
Step = Annotated[int, typer.Option(min=1, max=180, help="Degrees between the angles.")]
Out = Annotated[Path | None, typer.Option("--out", help="Folder for audit.json and, for images, audit.png.")]


def audit(
    checkpoint: Checkpoint = "digits",
    data: Data = None,
    images: Count = 300,
    step: Step = 15,
    out: Out = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Check that quarter turns (for shapes, any rotation) change nothing, and measure images at other angles.

    The exit code is 1 if the exact part fails: a prediction changes under a rotation by 90, 180 or 270 degrees, or
    scores, agreements or defined poses change by 1e-4 or more (inside the network by 1e-3, relative). For a model that
    was trained with --mirror ignore, mirror images belong to the exact part.

    `equicaps audit digits --out certificate`

    `equicaps audit runs/mine --data photos/ --json`

    `equicaps audit runs/shapes --data shapes/`
    """
