"""No stack trace for a user's mistake. Exit codes: 0 done, 1 failed or interrupted, 2 usage error."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console

from equicaps._checks import printable
from equicaps.data.shape_files import SHAPE_SUFFIXES
from equicaps.data.shapes_by_name import holds_only_shapes
from equicaps.errors import DamagedFilesError, EquicapsError, UsageError
from equicaps.images.background import BACKGROUNDS
from equicaps.inference import PoseModel
from equicaps.inference.prediction import Failure

FAILED, USAGE = 1, 2


@contextlib.contextmanager
def reported(console: Console) -> Iterator[None]:
    """Turn expected failures into one line, or one for each damaged file, and an exit code."""
    try:
        yield
    except UsageError as error:
        raise fail(console, str(error), USAGE) from error
    except DamagedFilesError as error:
        first, *others = str(error).split("\n")
        ended = fail(console, first, FAILED)
        for line in others:
            say(console, line)
        raise ended from error
    except EquicapsError as error:
        raise fail(console, str(error), FAILED) from error
    except KeyboardInterrupt as error:
        raise fail(console, str(error) or "interrupted; what was saved before is unchanged.", FAILED) from error


@contextlib.contextmanager
def settings_reported(console: Console) -> Iterator[None]:
    """While settings and data are read, values that make no sense and files that are not there are usage errors."""
    with reported(console):
        try:
            yield
        except EquicapsError:
            raise
        except (ValueError, OSError) as error:
            raise fail(console, str(error), USAGE) from error


def failures_reported(console: Console, failures: Sequence[tuple[Path, Failure]]) -> None:
    """Print why there is no answer, one line each; then the command as a whole has failed."""
    for file, failure in failures:
        named = str(file) in str(failure)
        say(console, f"error: {failure}" if named else f"error: {file}: {failure}")
    if failures:
        raise typer.Exit(FAILED)


def refuse_shapes(paths: Iterable[Path | str], model: PoseModel) -> None:
    """Raise if a file or a folder for a model that takes images is of shapes, by their endings."""
    for path in map(Path, paths):
        folder = path.is_dir()
        if holds_only_shapes(path) if folder else path.suffix.lower() in SHAPE_SUFFIXES:
            raise UsageError(
                f"{path} {'holds shapes' if folder else 'is a shape'}, but the model {model.card.name} takes images: "
                "name a model of shapes, for example --model modelnet10."
            )


def note_inverted(console: Console, model: PoseModel, count: int, images: int) -> None:
    """Say how many images were inverted, because the model knows only the opposite background."""
    if count and model.card.background:
        say(
            console,
            f"note: {count:,} of {images:,} images were inverted for the model, which was trained on images that are "
            f"{BACKGROUNDS[model.card.background]}.",
        )


def fail(console: Console, message: str, code: int) -> typer.Exit:
    """Print what is wrong; raise the result."""
    console.print("[red]error:[/red] ", end="")
    say(console, message)
    return typer.Exit(code)


def say(console: Console, line: str) -> None:
    """Print a line as it is; names of files may be in it."""
    console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
