"""``equicaps predict``: the class and angle of images."""

from pathlib import Path
from typing import Literal

from PIL.Image import Image
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equicaps._checks import printable
from equicaps.cli.answers import Failures, document, each_answer, entries
from equicaps.cli.predict_shapes import check_request, predict_shapes
from equicaps.cli.predict_to_file import Request, write_answers
from equicaps.cli.reporting import failures_reported, note_inverted, refuse_shapes, reported, settings_reported
from equicaps.cli.terminal import picture_files, show_json, write
from equicaps.drawing import draw_pose
from equicaps.errors import UsageError
from equicaps.images.decode import find_images, is_remote, open_image
from equicaps.images.pictures import encoded
from equicaps.inference import Answer, Card, PointModel, load
from equicaps.inference.model import WORKERS
from equicaps.inference.prediction import format_angle

NOT_UPRIGHT = "; it does not say how upright the object was."
"""What must be said of errors that no known angle was compared with."""


def predict(
    images: list[str],
    model: str,
    save: Path | None,
    out: Path | None,
    workers: int | None,
    engine: Literal["local", "ray"],
    address: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print the answer for every image or shape, and draw it where asked to; or write the answers into a file."""
    console = Console(stderr=True)
    if out is not None:
        with settings_reported(console):
            if save is not None:
                raise UsageError(
                    "--save draws a picture of every image, and --out is for large numbers of files: choose one."
                )
            request = Request(images, out, workers, engine, address, force)
            trained = load(model)
            if isinstance(trained, PointModel):
                check_request(request)
            else:
                refuse_shapes(images, trained)
        write_answers(console, trained, request, as_json)
        return
    with settings_reported(console):
        if engine != "local" or address is not None:
            raise UsageError("--engine and --address are for answers in a file: add --out answers.csv.")
        if remote := next(filter(is_remote, images), None):
            raise UsageError(f"{remote} is read with --out only: add --out answers.csv.")
        trained = load(model)
    if isinstance(trained, PointModel):
        predict_shapes(console, trained, list(map(Path, images)), save, workers, as_json)
        return
    with settings_reported(console):
        refuse_shapes(images, trained)
        files = find_images(list(map(Path, images)))
        targets = picture_files(files, save) if save else {}
    rows: list[tuple[Path, Answer]] = []
    failures: Failures = []
    answers = trained.predict_files(files, workers=workers or WORKERS)

    def opened(file: Path, answer: Answer) -> Image | None:
        return open_image(file) if save else None

    with reported(console):
        for file, answer, picture in each_answer(console, answers, len(files), failures, opened):
            if picture:
                caption = f"{answer.label}  {answer.confidence:.1%}  {format_angle(answer)}"
                drawn = draw_pose(picture, answer.angle, caption, error=answer.angle_error, period=answer.period)
                write(targets[file], encoded(drawn))
            rows.append((file, answer))
    if as_json:
        show_json(document(trained.card, "images", entries(rows, targets), failures))
    elif rows:
        _show(rows, trained.card)
    note_inverted(console, trained, sum(answer.inverted for _, answer in rows), len(rows))
    failures_reported(console, failures)


def _show(rows: list[tuple[Path, Answer]], card: Card) -> None:
    errors = any(answer.angle_error is not None for _, answer in rows)
    caption = f"{card.convention} {_meaning(card)}" if errors else card.convention
    table = Table(
        "image", "class", "confidence", "angle", "by agreement", caption=escape(caption), caption_justify="left"
    )
    for column in table.columns[2:4]:
        column.justify = "right"
    table.columns[0].overflow = "fold"
    for file, answer in rows:
        agreed = "–" if answer.agreement is None else f"{answer.agreed_label}  {answer.agreement:.2f}"
        angle = format_angle(answer)
        cells = (str(file), answer.label, f"{answer.confidence:.1%}", angle, agreed)
        table.add_row(*(escape(printable(cell)) for cell in cells))
    Console().print(table, highlight=False)


def _meaning(card: Card) -> str:
    """What ± says."""
    assert card.angle_errors is not None
    said = card.angle_errors.meaning(card.classes)
    return f"± is {said}" + ("." if any(card.angle_errors.known_angles) else NOT_UPRIGHT)
