"""The program ``equicaps``; needs ``pip install equicaps[train]``."""

import importlib
import sys
from typing import Annotated, Any

try:
    import typer
    from typer.core import TyperGroup
except ImportError:  # pragma: no cover - the tests have them
    sys.exit("equicaps: the commands need more packages; install them with `pip install 'equicaps[train]'`.")

from equicaps import __version__

COMMANDS = {
    "train": "Train a network. Ctrl-C saves; --resume continues.",
    "predict": "Classify images and read their angles.",
    "upright": "Rotate images upright by their predicted pose, with a contact sheet of before and after.",
    "audit": "Certify a model: exact under quarter turns, layer by layer, and measured at any angle.",
    "export": "Export a model for any batch size and compare the result with the network.",
    "info": "Show a model's card: task, data, measured figures, licence, convention.",
    "data": "List data sets and where they are; with a name, fetch it; with a folder, describe it.",
    "bench": "Measure images per CPU-second of a model, on one thread.",
    "serve": "Serve a page, to this machine only, on which you draw and rotate a digit and watch the answers.",
}
"""Name -> the first line of its help. Only the command that runs is imported: torch alone takes seconds."""


def load_command(name: str) -> Any:
    """The command with its options: the function and the file have its name."""
    alone = typer.Typer(add_completion=False)
    alone.command(name)(getattr(importlib.import_module(f"equicaps.cli.{name}"), name))
    return typer.main.get_command(alone)


class LoadedWhenRun(TyperGroup):
    """Lists commands by :data:`COMMANDS` and loads the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments name, and the rest of the arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, load_command(str(name)), rest


app = typer.Typer(
    name="equicaps",
    cls=LoadedWhenRun,
    help="Classify images and predict how they are rotated; rotations by 90 degrees change no prediction.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for _name, _help in COMMANDS.items():
    app.command(_name, help=_help)(lambda: None)


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
