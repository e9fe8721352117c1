"""``equicaps upright``: images rotated to the upright position of their class."""

from pathlib import Path
from typing import Any, NamedTuple

import typer
from PIL.Image import Image, Resampling
from rich.console import Console

from equicaps._checks import printable
from equicaps._files import create_folder
from equicaps.cli.answers import Failures, document, each_answer
from equicaps.cli.reporting import failures_reported, note_inverted, refuse_shapes, reported, settings_reported
from equicaps.cli.terminal import check_out, new_file, resolved, result_stems, show_json, write
from equicaps.cli.upright_shapes import upright_shapes
from equicaps.drawing import Pair, contact_sheet
from equicaps.errors import UsageError
from equicaps.images.decode import find_images, open_image
from equicaps.images.pictures import LOSSLESS_SUFFIXES, encoded, rotate_back, suffix
from equicaps.inference import Answer, PointModel, load
from equicaps.inference.prediction import format_angle

SHEET = "contact_sheet.png"
TOLERANCE = 1.0
"""The default of the option."""
MOST = 60
"""Images on a contact sheet."""


class Rotated(NamedTuple):
    """The result for one image."""

    file: Path
    target: Path
    answer: Answer
    degrees: float
    lossless: bool


def upright(
    images: list[Path],
    out: Path,
    model: str,
    tolerance: float,
    quarter_turns: bool,
    expand: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write every image or shape rotated upright, and a contact sheet."""
    console = Console(stderr=True)
    with settings_reported(console):
        trained = load(model)
        check_out(out, images)
        if isinstance(trained, PointModel) and (quarter_turns or expand or tolerance != TOLERANCE):
            raise UsageError("--quarter-turns, --expand and --tolerance are for images, but the model takes shapes.")
    if isinstance(trained, PointModel):
        upright_shapes(console, trained, images, out, out / SHEET, force, as_json)
        return
    with settings_reported(console):
        refuse_shapes(images, trained)
        files = find_images(images)
        inputs = resolved(files)
        sheet = new_file(out / SHEET, force=force, inputs=inputs)
        targets = result_stems(files, images, out, sheet)
        for stem in targets.values():
            for kind in LOSSLESS_SUFFIXES:
                new_file(stem.with_name(stem.name + kind), force=force, inputs=inputs)
    failures: Failures = []
    done: list[Rotated] = []
    pairs: list[Pair] = []
    limit = 45.0 if quarter_turns else tolerance
    answers = trained.predict_files(files)

    def rotated(file: Path, answer: Answer) -> tuple[Image, Image, Rotated]:
        before = open_image(file)
        return before, *_rotate(file, before, answer, targets[file], limit, expand)  # which may become too large

    with reported(console):
        create_folder(out)
        for _, answer, found in each_answer(console, answers, len(files), failures, rotated, what="rotating"):
            before, after, entry = found
            write(entry.target, encoded(after))
            done.append(entry)
            if len(pairs) < MOST:
                caption = f"{answer.label} {format_angle(answer)}"
                pairs.append(Pair(_small(before), _small(after), caption))
        if pairs:
            write(sheet, encoded(contact_sheet(pairs)))
    if as_json:
        drawn = str(sheet) if pairs else None
        show_json(document(trained.card, "images", _entries(done), failures, contact_sheet=drawn))
    elif done:
        _show(done, out, sheet, expand=expand)
    note_inverted(console, trained, sum(entry.answer.inverted for entry in done), len(done))
    failures_reported(console, failures)


def _show(done: list[Rotated], out: Path, sheet: Path, *, expand: bool) -> None:
    upright = [entry for entry in done if entry.answer.angle is not None]
    lossless = sum(entry.lossless for entry in upright)
    cut = "" if expand or lossless == len(upright) else "; corners may be cut off, --expand keeps them"
    typer.echo(
        f"rotated upright into {printable(str(out))}: {len(upright)} of {len(done)} images, {lossless} of them by "
        f"whole quarter turns, which lose nothing{cut}; without a pose and copied unchanged: "
        f"{len(done) - len(upright)}; before and after: {printable(str(sheet))}"
    )


def _rotate(
    file: Path, picture: Image, answer: Answer, stem: Path, tolerance: float, expand: bool
) -> tuple[Image, Rotated]:
    angle = answer.angle or 0.0
    quarters = 90.0 * round(angle / 90)
    lossless = abs(angle - quarters) <= tolerance
    after = rotate_back(picture, angle, tolerance=tolerance, expand=expand)
    target = stem.with_name(stem.name + suffix(after))
    return after, Rotated(file, target, answer, -quarters if lossless else -angle, lossless)


def _small(picture: Image) -> Image:
    """A copy small enough that those of a whole contact sheet fit into memory."""
    shrunk = picture.copy()
    shrunk.thumbnail((256, 256), Resampling.NEAREST if shrunk.mode.startswith("I") else Resampling.BICUBIC)
    return shrunk


def _entries(done: list[Rotated]) -> list[dict[str, Any]]:
    return [
        {"file": str(entry.file), "result": str(entry.target), "label": entry.answer.label,
         "confidence": entry.answer.confidence, "angle": entry.answer.angle, "rotated_by": entry.degrees,
         "lossless": entry.lossless, "inverted": entry.answer.inverted}
        for entry in done
    ]  # fmt: skip
