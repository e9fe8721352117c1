"""``equicaps upright`` with a model of shapes: shapes rotated to the upright of their class."""

import contextlib
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from PIL.Image import Image
from rich.console import Console

from equicaps._checks import printable
from equicaps._files import create_folder
from equicaps.cli.answers import Failures, document, each_answer
from equicaps.cli.reporting import failures_reported, reported, settings_reported
from equicaps.cli.terminal import new_file, resolved, result_stems, show_json, write
from equicaps.data import read_shape
from equicaps.data.shapes_by_name import find_shapes
from equicaps.drawing import Pair, contact_sheet, draw_shape
from equicaps.images.pictures import encoded
from equicaps.inference import PointAnswer, PointModel
from equicaps.inference.clouds import read_clouds
from equicaps.inference.point_model import rotate_back
from equicaps.inference.rotated_shapes import SUFFIXES, ShapeFile, upright_shape

MOST = 60
"""Shapes on a contact sheet."""
SIDE = 192
"""Of its pictures."""


class Rotated(NamedTuple):
    """The result for one shape."""

    file: Path
    target: Path
    answer: PointAnswer


def upright_shapes(
    console: Console, model: PointModel, paths: list[Path], out: Path, sheet: Path, force: bool, as_json: bool
) -> None:
    """Write every shape rotated upright, in its own coordinates, and a contact sheet."""
    with settings_reported(console):
        files = find_shapes(paths)
        inputs = resolved(files)
        new_file(sheet, force=force, inputs=inputs)
        stems = result_stems(files, paths, out, sheet)
        for stem in stems.values():
            for kind in SUFFIXES:
                new_file(stem.with_name(stem.name + kind), force=force, inputs=inputs)
    failures: Failures = []
    done: list[Rotated] = []
    pairs: list[Pair] = []
    answers = model.predict_files(files)

    def rotated(file: Path, answer: PointAnswer) -> ShapeFile:
        return upright_shape(read_shape(file, scale=False), _rotation(answer))

    with reported(console):
        create_folder(out)
        for file, answer, result in each_answer(console, answers, len(files), failures, rotated, what="rotating"):
            target = stems[file].with_name(stems[file].name + result.suffix)
            write(target, result.content)
            done.append(Rotated(file, target, answer))
            if len(pairs) < MOST:
                with contextlib.suppress(OSError):  # it has been changed or removed in this moment
                    before, after = _pictures(file, model.card.points, _rotation(answer))
                    pairs.append(Pair(before, after, _caption(answer)))
        if pairs:
            write(sheet, encoded(contact_sheet(pairs)))
    if as_json:
        drawn = str(sheet) if pairs else None
        show_json(document(model.card, "shapes", _entries(done), failures, contact_sheet=drawn))
    elif done:
        posed = sum(entry.answer.rotation is not None for entry in done)
        typer.echo(
            f"{posed} shapes upright in {printable(str(out))}; {len(done) - posed} without a pose, not rotated; before "
            f"and after: {printable(str(sheet))}"
        )
    failures_reported(console, failures)


def _rotation(answer: PointAnswer) -> torch.Tensor:
    """NaN without a pose."""
    return torch.tensor(answer.rotation or [[torch.nan] * 3] * 3)


def _caption(answer: PointAnswer) -> str:
    return f"{answer.label} {'–' if answer.angle is None else f'{answer.angle:.0f}°'}"


def _pictures(file: Path, points: int, rotation: torch.Tensor) -> tuple[Image, Image]:
    """The points that the model saw, before and after."""
    [cloud] = read_clouds(file, points)
    before, after = (draw_shape(seen.numpy(), None, "", side=SIDE) for seen in (cloud, rotate_back(cloud, rotation)))
    return before, after


def _entries(done: list[Rotated]) -> list[dict[str, Any]]:
    return [
        {"file": str(entry.file), "result": str(entry.target), "label": entry.answer.label,
         "confidence": entry.answer.confidence, "rotation": entry.answer.rotation, "angle": entry.answer.angle}
        for entry in done
    ]  # fmt: skip
