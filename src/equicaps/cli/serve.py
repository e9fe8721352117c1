"""``equicaps serve``: an interactive page."""

import contextlib
import webbrowser
from collections.abc import Iterator

import typer
from rich.console import Console

from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.errors import FileError
from equicaps.inference import SHIPPED, PoseModel, load_image_model

SWITCHED = ("digits", "digits-paper")
"""The shipped models between which the page can switch: our network and the paper's."""


def serve(model: str, port: int, show: bool) -> None:
    """Serve the page until Ctrl-C."""
    console = Console(stderr=True)
    with settings_reported(console):
        trained = load_image_model(model)
    try:
        from equicaps.serve import Playground, interchangeable, listen, make_app, run
    except ImportError as error:
        raise fail(console, str(error), FAILED) from error
    with reported(console):
        try:
            on = listen(port)
        except OSError as error:
            raise fail(console, str(error), FAILED) from error
        with on, contextlib.suppress(KeyboardInterrupt):  # the way to end it, at any moment
            plain = [found for found in _shipped(console, "digits-plain") if found.classes == trained.classes]
            others = [found for found in _shipped(console, *_others(model)) if interchangeable(trained, found)]
            app = make_app(Playground(trained, next(iter(plain), None), others))
            address = f"http://127.0.0.1:{on.getsockname()[1]}"
            typer.echo(f"{trained.card.name} on {address} (press Ctrl-C to stop)")
            if show:
                webbrowser.open(address)
            run(app, on)


def _others(model: str) -> list[str]:
    """The shipped models that the page offers beside this one: none beside a model of the user's own."""
    switched = [name for name in SWITCHED if name in SHIPPED]  # any other name would be a file of the user's
    return [name for name in switched if name != model] if model in switched else []


def _shipped(console: Console, *names: str) -> Iterator[PoseModel]:
    """Those of the shipped models that are there; a note names those that cannot be read."""
    for name in names:
        try:
            yield load_image_model(name)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            console.print(f"note: the page is without {name}: {error}", markup=False, highlight=False, soft_wrap=True)
