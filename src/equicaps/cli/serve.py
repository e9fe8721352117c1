"""``equicaps serve``: an interactive page."""

import contextlib
import webbrowser
from typing import Annotated

import typer
from rich.console import Console

from equicaps.cli.reporting import FAILED, fail, reported, settings_reported
from equicaps.cli.terminal import ModelOption
from equicaps.inference import load

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def serve(model: ModelOption = "digits", port: Port = 8765, show: Open = False) -> None:
    """Serve a page, to this machine only, on which you draw and rotate a digit and watch the answers.

    Press Ctrl-C to stop.

    `equicaps serve --open`

    `equicaps serve --model runs/mine --port 8000`
    """
    console = Console(stderr=True)
    with settings_reported(console):
        trained = load(model)
    try:
        from equicaps.serve import Playground, listen, make_app, run
    except ImportError as error:
        raise fail(console, str(error), FAILED) from error
    with reported(console):
        try:
            on = listen(port)
        except OSError as error:
            raise fail(console, str(error), FAILED) from error
        with on, contextlib.suppress(KeyboardInterrupt):  # the way to end it, at any moment
            plain = load("digits-plain")
            app = make_app(Playground(trained, plain if plain.card.classes == trained.card.classes else None))
            address = f"http://127.0.0.1:{on.getsockname()[1]}"
            typer.echo(f"{trained.card.name} on {address} (press Ctrl-C to stop)")
            if show:
                webbrowser.open(address)
            run(app, on)
