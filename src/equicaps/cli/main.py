"""The program ``equicaps``; needs ``pip install equicaps[train]``."""

import sys
from typing import Annotated

try:
    import typer
except ImportError:  # pragma: no cover
    sys.exit("equicaps: the commands need more packages; install them with `pip install 'equicaps[train]'`.")

from equicaps import __version__
from equicaps.cli.audit import audit
from equicaps.cli.bench import bench
from equicaps.cli.data import data
from equicaps.cli.export import export
from equicaps.cli.info import info
from equicaps.cli.predict import predict
from equicaps.cli.reproduce import reproduce
from equicaps.cli.serve import serve
from equicaps.cli.train import train
from equicaps.cli.upright import upright

app = typer.Typer(
    name="equicaps",
    help="Networks whose answers do not change when the input is turned, and which tell how it was turned.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for command in (train, predict, upright, audit, export, info, data, bench, serve, reproduce):
    app.command()(command)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"equicaps {__version__}")
        raise typer.Exit
    return asked


Version = Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")]


@app.callback()
def equicaps(version: Version = False) -> None:
    """Networks whose answers do not change when the input is turned, and which tell how it was turned."""


if __name__ == "__main__":
    app()
