"""The program ``equicaps``; needs ``pip install equicaps[train]``."""

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

try:
    import typer
except ImportError:  # pragma: no cover - the tests have it
    sys.exit("equicaps: the commands need more packages; install them with `pip install 'equicaps[train]'`.")

from equicaps import __version__

COMMANDS = ("train", "predict", "upright", "audit", "export", "info", "data", "bench", "serve")
"""In the order of the help. ``cli/options/NAME.py`` declares a command, ``cli/NAME.py`` carries it out."""


def command(name: str) -> Callable[..., None]:
    """The declaration of a command. What carries it out, and with it torch, is imported when it runs."""
    declared: Callable[..., None] = getattr(importlib.import_module(f"equicaps.cli.options.{name}"), name)

    @functools.wraps(declared)
    def run(**options: Any) -> None:
        getattr(importlib.import_module(f"equicaps.cli.{name}"), name)(**options)

    return run


app = typer.Typer(name="equicaps", no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False)
for _name in COMMANDS:
    app.command(_name)(command(_name))


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"equicaps {__version__}")
        raise typer.Exit
    return asked


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def equicaps(version: Version = False) -> None:
    """Classify images and predict how they are rotated; rotations by 90 degrees change no prediction."""


if __name__ == "__main__":
    app()
