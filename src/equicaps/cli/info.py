"""``equicaps info``: the card of a model."""

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equicaps.cli.reporting import settings_reported
from equicaps.cli.terminal import show_json
from equicaps.images.background import BACKGROUNDS
from equicaps.inference import PointModel, PoseModel, load


def info(checkpoint: str, as_json: bool) -> None:
    """Print the card of a model."""
    console = Console(stderr=True)
    with settings_reported(console):
        model = load(checkpoint)
    card = model.card
    facts, rows = _of_shapes(model) if isinstance(model, PointModel) else _of_images(model)
    if as_json:
        show_json({**asdict(card), "network": facts})
        return
    table = Table(title=escape(card.name), show_header=False, title_justify="left")
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    rows |= {
        "classes": ", ".join(card.classes),
        "figures": "\n".join(f"{name} {value:,.6g}" for name, value in card.figures.items()) or "none",
        "measured by": card.command or "its own training",
        "licence": card.licence or "not stated",
        "convention": card.convention,
    }
    for name, text in rows.items():
        table.add_row(name, escape(text))
    Console().print(table, highlight=False)


def _of_images(model: PoseModel) -> tuple[dict[str, Any], dict[str, str]]:
    """What a program and what a person should know about a network that takes images."""
    card, network, errors = model.card, model.network, model.card.angle_errors
    parameters, of_decoder = network.parameter_counts()
    preset = card.training.get("model", {}).get("preset", "")
    facts = {"preset": preset, "parameters": parameters, "decoder_parameters": of_decoder,
             "image_size": network.image_size, "in_channels": network.body.config.in_channels,
             "mirror": "ignore" if network.ignores_mirror else "distinguish"}  # fmt: skip
    size = f"{network.image_size}x{network.image_size}"
    colours = "colour" if network.body.config.in_channels == 3 else "grey"
    return facts, {
        "task": card.task,
        "network": f"{preset}, {parameters:,} parameters, {colours} images of {size} (others are resized)"
        + (", no difference between mirror images" if network.ignores_mirror else ""),
        "decoder": f"{of_decoder:,} more parameters, which predictions do not use" if of_decoder else "none",
        "data": card.data,
        "background": BACKGROUNDS[card.background] if card.background else "any",
        **({} if errors is None else {"angle error": errors.meaning(card.classes)}),
    }


def _of_shapes(model: PointModel) -> tuple[dict[str, Any], dict[str, str]]:
    """The same for a network that takes shapes."""
    card, (parameters, _) = model.card, model.network.parameter_counts()
    preset = card.training.get("model", {}).get("preset", "")
    return {"preset": preset, "parameters": parameters, "points": card.points}, {
        "task": card.task,
        "network": f"{preset}, {parameters:,} parameters, shapes of which {card.points:,} points are drawn",
        "data": card.data,
    }
