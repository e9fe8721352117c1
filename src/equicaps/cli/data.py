"""``equicaps data``: lists and fetches data sets."""

from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equicaps._checks import printable
from equicaps.cli.progress import reading_bar
from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import show_json
from equicaps.data import Dataset, Shapes, cache_folder, load_folder
from equicaps.data.catalogue import CATALOGUE, SHAPE_CATALOGUE, Entry
from equicaps.data.folder import is_table
from equicaps.data.shapes_by_name import holds_shapes, load_shape_splits
from equicaps.errors import UsageError

KNOWN: dict[str, Entry[Any]] = {**CATALOGUE, **SHAPE_CATALOGUE}
"""Every data set, of images or of shapes, by its name."""


def data(name: str | None, as_json: bool) -> None:
    """List the data sets, or describe the one that is named or in this folder."""
    console = Console(stderr=True)
    if name is None:
        _list(as_json)
        return
    sets: list[Dataset | Shapes] = []
    with settings_reported(console):
        if name not in KNOWN:
            if not Path(name).is_dir() and not is_table(Path(name)):
                raise UsageError(
                    f"{name!r} is neither a data set ({', '.join(KNOWN)}) nor a folder of images or shapes."
                )
            shapes = holds_shapes(name)
            with reading_bar(console, kind="shape" if shapes else "image") as watch:
                sets = list(load_shape_splits(name, watch=watch) if shapes else load_folder(name, watch=watch))
    with reported(console):
        try:
            if name in KNOWN:
                sets = [KNOWN[name].load(part) for part in KNOWN[name].parts]
        except (OSError, ValueError, ImportError) as error:  # the name is right, so this is no usage error
            raise fail(console, str(error), FAILED) from error
    if as_json:
        show_json(
            [{"name": entry.name, **_size(entry), "classes": list(entry.classes), "note": entry.note} for entry in sets]
        )
        return
    for entry in sets:
        typer.echo(printable(repr(entry)))
    for note in dict.fromkeys(entry.note for entry in sets if entry.note):  # one for all parts, as a rule
        typer.echo(printable(note))


def _size(entry: Dataset | Shapes) -> dict[str, int]:
    if isinstance(entry, Shapes):
        return {"shapes": len(entry)}
    return {"images": len(entry), "channels": entry.images.shape[1], "size": entry.images.shape[-1]}


def _list(as_json: bool) -> None:
    rows: list[dict[str, Any]] = []
    for entry in KNOWN.values():
        found = {part: str(place) if (place := entry.found(part)) else None for part in entry.parts}
        rows.append({"name": entry.name, "contents": entry.contents, "licence": entry.licence, "found": found})
    if as_json:
        show_json({"cache": str(cache_folder()), "sets": rows})
        return
    table = Table("name", "contents", "licence", "found in", caption=f"cache: {cache_folder()}", caption_justify="left")
    table.columns[0].no_wrap = True
    table.columns[3].overflow = "fold"
    for row in rows:
        places = sorted({place for place in row["found"].values() if place})
        missing = [part for part, place in row["found"].items() if place is None]
        where = "\n".join(places) or f"nowhere: equicaps data {row['name']}"
        if places and missing:
            where += f"\nwithout {', '.join(missing)}"
        table.add_row(row["name"], row["contents"], row["licence"], escape(where))
    Console().print(table, highlight=False)
