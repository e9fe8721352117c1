"""What the commands share: a model by name, tables, bars, JSON, files that are never overwritten."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from equicaps._files import create_folder, write_bytes
from equicaps.data import Dataset, embedded_digits, load_folder, load_galaxies, load_mnist
from equicaps.errors import UsageError
from equicaps.images.background import BACKGROUNDS
from equicaps.inference import SHIPPED, PoseModel

T = TypeVar("T")

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help=f"A shipped model ({', '.join(SHIPPED)}), or a file or folder of yours.")
]
Checkpoint = Annotated[str, typer.Argument(help=f"A shipped model ({', '.join(SHIPPED)}), or a file or folder.")]
Invert = Annotated[bool, typer.Option("--invert", help="Read images inverted: dark on bright as bright on dark.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Data = Annotated[str, typer.Option(help="digits (in the package), mnist, galaxies, or a FOLDER of classes.")]
Force = Annotated[bool, typer.Option("--force", help="Replace results that are already there (never an input).")]


def test_set(data: str, model: PoseModel) -> Dataset:
    """By name, or the test part of a folder of the model's classes."""
    if data == "digits":
        return embedded_digits("test")
    if data == "mnist":
        return load_mnist("test")
    if data == "galaxies":
        return load_galaxies("test")
    if not Path(data).is_dir():
        raise UsageError(f"{data!r} is neither a data set (digits, mnist, galaxies) nor a folder of images.")
    colour = model.network.body.config.in_channels == 3
    return load_folder(data, size=model.card.frame, channels=3 if colour else 1).test


def note_opposite_background(console: Console, model: PoseModel, which: str, advice: str) -> None:
    """Tell that images (most, or 3 of 5) are dark where the model knows them bright, and the other way round."""
    if model.card.background:
        theirs = "bright" if model.card.background == "dark" else "dark"
        console.print(
            f"note: {which} images have a {theirs} background, but the model was trained on images that "
            f"are {BACKGROUNDS[model.card.background]}: its answers to them mean little. {advice}",
            markup=False, highlight=False, soft_wrap=True,
        )  # fmt: skip


def inverting(invert: bool) -> str:
    """What to do about images of the opposite background."""
    return "Leave out --invert for them." if invert else "Read them with --invert."


def show_json(value: Any) -> None:
    """One JSON document on standard output; there is no NaN in JSON, so figures that are not numbers are null."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    typer.echo(json.dumps(_finite(plain), indent=1, allow_nan=False, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # false for NaN, too
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def tracked(console: Console, items: Iterable[T], total: int, what: str) -> Iterator[T]:
    """The items, with a bar where there is a terminal."""
    columns = (TextColumn(what), BarColumn(20), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield from bars.track(items, total=total)


def new_file(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> Path:
    """The path, if a result may be written there."""
    if any(same(path, given) for given in inputs):
        raise UsageError(f"{path} is an input and is never overwritten: choose another name.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it.")
    if path.exists() and not force:
        raise UsageError(f"{path} is already there: choose another name, or replace it with --force.")
    return path


def write(path: Path, content: bytes) -> None:
    """All of it or nothing."""
    create_folder(path.parent)
    write_bytes(path, content)


def same(a: Path, b: Path) -> bool:
    """Whether two paths are one file, links followed."""
    return a.resolve() == b.resolve()
