"""``equicaps serve``: an interactive page."""

import contextlib
import webbrowser
from collections.abc import Iterator
from typing import TypeVar

import typer
from rich.console import Console

from equicaps.cli.reporting import FAILED, fail, reported, say, settings_reported
from equicaps.errors import FileError
from equicaps.inference import SHIPPED, PointModel, PoseModel, load, load_image_model

SWITCHED = ("digits", "digits-paper")
"""The shipped models between which the page can switch: our network and the paper's."""
SHAPES = "modelnet10"
"""The shipped model of the second tab, which is there if this model is."""

M = TypeVar("M", PoseModel, PointModel)


def serve(model: str, port: int, show: bool) -> None:
    """Serve the page until Ctrl-C."""
    console = Console(stderr=True)
    with settings_reported(console):
        named = load(model)
        first = model if isinstance(named, PoseModel) else SWITCHED[0]  # the tab of images keeps the shipped models
        trained = named if isinstance(named, PoseModel) else load_image_model(first)
    try:
        from equicaps.serve import Playground, ShapePlayground, interchangeable, listen, make_app, run
    except ImportError as error:
        raise fail(console, str(error), FAILED) from error
    with reported(console):
        try:
            on = listen(port)
        except OSError as error:
            raise fail(console, str(error), FAILED) from error
        with on, contextlib.suppress(KeyboardInterrupt):  # the way to end it, at any moment
            plain = [
                found for found in _shipped(console, PoseModel, "digits-plain") if found.classes == trained.classes
            ]
            others = [
                found for found in _shipped(console, PoseModel, *_others(first)) if interchangeable(trained, found)
            ]
            shapes = named if isinstance(named, PointModel) else next(_shipped(console, PointModel, SHAPES), None)
            second = None if shapes is None else ShapePlayground(shapes)
            app = make_app(Playground(trained, next(iter(plain), None), others, second))
            address = f"http://127.0.0.1:{on.getsockname()[1]}" + ("/#shapes" if named is shapes else "")
            typer.echo(f"{named.card.name} on {address} (press Ctrl-C to stop)")
            if show:
                webbrowser.open(address)
            run(app, on)


def _others(model: str) -> list[str]:
    """The shipped models that the page offers beside this one: none beside a model of the user's own."""
    return [name for name in SWITCHED if name != model] if model in SWITCHED and model in SHIPPED else []


def _shipped(console: Console, kind: type[M], *names: str) -> Iterator[M]:
    """Those of the shipped models that are there; a note names those that cannot be read."""
    for name in names:
        if name not in SHIPPED:  # it would be a file of the user's
            continue
        try:
            found = load(name)
        except FileError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue
            say(console, f"note: the page is without {name}: {error}")
        else:
            if isinstance(found, kind):
                yield found
