"""``equicaps predict``: what images show and how they are turned."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from equicaps.cli.reporting import FAILED, reported, settings_reported
from equicaps.cli.terminal import (
    AsJson,
    Invert,
    ModelOption,
    inverting,
    new_file,
    note_opposite_background,
    show_json,
    tracked,
    write,
)
from equicaps.drawing import draw_pose
from equicaps.images.decode import find_images, open_image
from equicaps.images.pictures import encoded
from equicaps.inference import load
from equicaps.inference.prediction import Answer, format_angle

Images = Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")]
Save = Annotated[Path | None, typer.Option("--save", help="Folder for the pictures with the pose as an arrow.")]


def predict(
    images: Images, model: ModelOption = "digits", invert: Invert = False, save: Save = None, as_json: AsJson = False
) -> None:
    """Tell class, confidence and angle of images.

    The angle is in degrees, counter-clockwise as you see the image, against the class upright; exact under turns by 90
    degrees. "By agreement" is the capsules' own answer: the class whose votes agree most.

    `equicaps predict seven.png --save arrows`

    `equicaps predict ink_on_paper.png --invert`

    `equicaps predict scans/ --model runs/mine --json > answers.json`
    """
    console = Console(stderr=True)
    with settings_reported(console):
        trained, files = load(model), find_images(images)
        targets = _targets(files, save) if save else {}
    rows: list[tuple[Path, Answer]] = []
    problems: list[tuple[Path, Exception]] = []
    with reported(console):
        for file, found in tracked(console, trained.predict_files(files, invert=invert), len(files), "reading"):
            if isinstance(found, Answer):
                rows.append((file, found))
            else:
                problems.append((file, found))
                continue
            if save:
                caption = f"{found.label}  {found.confidence:.1%}  {format_angle(found.angle)}"
                write(targets[file], encoded(draw_pose(open_image(file), found.angle, caption)))
    if as_json:
        show_json(_document(trained.card.name, trained.card.convention, rows, problems, targets))
    elif rows:
        _show(rows, trained.card.convention)
    opposite = sum(bool(found.opposite_background) for _, found in rows)
    if opposite:
        note_opposite_background(console, trained, f"{opposite:,} of {len(rows):,}", inverting(invert))
    for _, problem in problems:
        console.print(f"error: {problem}", markup=False, highlight=False, soft_wrap=True)
    if problems:
        raise typer.Exit(FAILED)


def _targets(files: list[Path], folder: Path) -> dict[Path, Path]:
    targets: dict[Path, Path] = {}
    for file in files:
        target, number = folder / f"{file.stem}-pose.png", 1
        while target.exists() or target in targets.values():
            number += 1
            target = folder / f"{file.stem}-pose-{number}.png"
        targets[file] = new_file(target, force=False, inputs=files)
    return targets


def _show(rows: list[tuple[Path, Answer]], convention: str) -> None:
    table = Table("image", "class", "confidence", "angle", "by agreement", caption=convention, caption_justify="left")
    for column in table.columns[2:4]:
        column.justify = "right"
    table.columns[0].overflow = "fold"
    for file, found in rows:
        agreed = "–" if found.agreement is None else f"{found.agreed_label}  {found.agreement:.2f}"
        cells = (str(file), found.label, f"{found.confidence:.1%}", format_angle(found.angle), agreed)
        table.add_row(*map(escape, cells))
    Console().print(table, highlight=False)


def _document(
    name: str,
    convention: str,
    rows: list[tuple[Path, Answer]],
    problems: list[tuple[Path, Exception]],
    targets: dict[Path, Path],
) -> dict[str, Any]:
    images = [
        {"file": str(file), **asdict(found), **({"saved": str(targets[file])} if file in targets else {})}
        for file, found in rows
    ]
    errors = [{"file": str(file), "error": str(problem)} for file, problem in problems]
    return {"model": name, "convention": convention, "images": images, "errors": errors}
