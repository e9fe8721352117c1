"""``equicaps data``: lists and fetches data sets."""

from typing import Annotated

import typer

from equicaps.cli.options import DATA_SETS, AsJson

Name = Annotated[str | None, typer.Argument(help=f"{DATA_SETS}, or a FOLDER with one folder per class.")]


def data(name: Name = None, as_json: AsJson = False) -> None:
    """List data sets and where they are; with a name, fetch it; with a folder, describe it.

    Files are looked for in EQUICAPS_DATA and in the cache. What is missing is downloaded into the cache and verified;
    modelnet10 cannot be downloaded. A folder may hold images or shapes. Images are read once and kept in the cache,
    reduced, until they change.

    `equicaps data`

    `equicaps data mnist`

    `equicaps data photos/`
    """
