"""No stack trace for a user's mistake. Exit codes: 0 done, 1 could not be done or was stopped, 2 asked wrongly."""

import contextlib
from collections.abc import Iterator

import typer
from rich.console import Console

from equicaps.data import FetchError
from equicaps.training import MisuseError, TrainingError

FAILED, MISUSED = 1, 2


@contextlib.contextmanager
def reported(console: Console) -> Iterator[None]:
    """Turn expected failures into one line and an exit code."""
    try:
        yield
    except MisuseError as error:
        raise fail(console, str(error), MISUSED) from error
    except (TrainingError, FetchError) as error:
        raise fail(console, str(error), FAILED) from error
    except KeyboardInterrupt as error:
        raise fail(console, str(error) or "stopped at once; what was saved before is untouched.", FAILED) from error


@contextlib.contextmanager
def settings_reported(console: Console) -> Iterator[None]:
    """While settings and data are read, values that make no sense and files that are not there are mistakes."""
    with reported(console):
        try:
            yield
        except FetchError:
            raise
        except (ValueError, OSError) as error:
            raise fail(console, str(error), MISUSED) from error


def fail(console: Console, message: str, code: int) -> typer.Exit:
    """Say what is wrong; raise the result."""
    console.print("[red]error:[/red] ", end="")
    console.print(message, markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(code)
