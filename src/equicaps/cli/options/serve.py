"""``equicaps serve``: an interactive page."""

from typing import Annotated

import typer

from equicaps.cli.options import ModelOption

Port = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes any free one.")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def serve(model: ModelOption = "digits", port: Port = 8765, show: Open = False) -> None:
    """Serve a page, to this machine only, on which you draw and rotate a digit and watch the answers.

    A second tab rotates shapes in space, with the shipped model modelnet10 or with a model of shapes that --model
    names. Press Ctrl-C to stop.

    `equicaps serve --open`

    `equicaps serve --model runs/mine --port 8000`
    """
