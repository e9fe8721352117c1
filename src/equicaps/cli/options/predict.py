"""``equicaps predict``: the class and angle of images."""

from pathlib import Path
from typing import Annotated

import typer

from equicaps.cli.options import AsJson, Invert, ModelOption

Images = Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")]
Save = Annotated[Path | None, typer.Option("--save", help="Folder for pictures with the pose drawn as an arrow.")]


def predict(
    images: Images, model: ModelOption = "digits", invert: Invert = False, save: Save = None, as_json: AsJson = False
) -> None:
    """Classify images and read their angles.

    The angle is in degrees, counter-clockwise as you see the image, from the upright position of the class. If you
    rotate the image by 90 degrees, the angle follows exactly, up to rounding; in between it is approximate. "By
    agreement" is the capsules' own answer: the class whose votes agree most.

    `equicaps predict seven.png --save arrows`

    `equicaps predict ink_on_paper.png --invert`

    `equicaps predict scans/ --model runs/mine --json > answers.json`
    """
