"""``equicaps predict`` with a model of shapes: their classes and rotations."""

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from torch import Tensor

from equicaps._checks import printable
from equicaps.cli.answers import Failures, document, each_answer, entries
from equicaps.cli.predict_to_file import Request
from equicaps.cli.reporting import failures_reported, reported, settings_reported
from equicaps.cli.terminal import picture_files, show_json, write
from equicaps.data.shapes_by_name import find_shapes
from equicaps.drawing import draw_shape
from equicaps.errors import UsageError
from equicaps.images.decode import is_remote
from equicaps.images.pictures import encoded
from equicaps.inference import PointAnswer, PointModel
from equicaps.inference.clouds import read_clouds
from equicaps.inference.point_prediction import format_rotation


def check_workers(workers: int | None) -> None:
    """Raise if they were asked for: shapes are read one after the other."""
    if workers is not None:
        raise UsageError("--workers is for images, but the model takes shapes: leave it out.")


def check_request(request: Request) -> None:
    """Raise if answers in a file are asked for in a way that only a model of images can follow."""
    if request.engine != "local":
        raise UsageError("--engine ray is for images, but the model takes shapes: leave it out.")
    if remote := next(filter(is_remote, request.images), None):
        raise UsageError(f"{remote}: a model of shapes reads files on this machine only. Download them first.")
    check_workers(request.workers)


def predict_shapes(
    console: Console, model: PointModel, paths: list[Path], save: Path | None, workers: int | None, as_json: bool
) -> None:
    """Print the answer for every shape, and draw it where asked to."""
    with settings_reported(console):
        check_workers(workers)
        files = find_shapes(paths)
        targets = picture_files(files, save) if save else {}
    rows: list[tuple[Path, PointAnswer]] = []
    failures: Failures = []
    answers = model.predict_files(files)

    def clouds(file: Path, answer: PointAnswer) -> list[Tensor]:
        return read_clouds(file, model.card.points) if save else []

    with reported(console):
        for file, answer, seen in each_answer(console, answers, len(files), failures, clouds):
            for cloud in seen:
                caption = f"{answer.label}  {answer.confidence:.1%}  {format_rotation(answer)}"
                write(targets[file], encoded(draw_shape(cloud.numpy(), answer.rotation, caption)))
            rows.append((file, answer))
    if as_json:
        show_json(document(model.card, "shapes", entries(rows, targets), failures))
    elif rows:
        _show(rows, model.card.convention)
    failures_reported(console, failures)


def _show(rows: list[tuple[Path, PointAnswer]], convention: str) -> None:
    table = Table(
        "shape", "class", "confidence", "rotation", "by agreement", caption=convention, caption_justify="left"
    )
    table.columns[2].justify = "right"
    table.columns[0].overflow = "fold"
    for file, answer in rows:
        agreed = f"{answer.agreed_label}  {answer.agreement:.2f}"
        cells = (str(file), answer.label, f"{answer.confidence:.1%}", format_rotation(answer), agreed)
        table.add_row(*(escape(printable(cell)) for cell in cells))
    Console().print(table, highlight=False)
