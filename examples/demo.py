"""Classify rotated digits and read their angles, with the model and the digits that ship with the package.

Prints the accuracy, the pose error and what quarter turns change (nothing), and writes a picture of rotated digits with
the pose of each as an arrow. Exits with 1 if a quarter turn changes a prediction. Run: make demo
"""

import math
import sys
import time
from pathlib import Path

import torch
from PIL import Image, ImageDraw
from rich.console import Console
from rich.table import Table

import equicaps
from equicaps.data import Dataset, embedded_digits
from equicaps.images import rotate
from equicaps.inference import PoseModel
from equicaps.metrics import accuracy, exactness
from equicaps.training import AnyAngle

PICTURE = Path("demo.png")
SCALE, MARGIN = 3, 4
COLUMNS = 8


def main() -> int:
    torch.set_num_threads(1)
    model, digits = equicaps.load("digits"), embedded_digits("test")
    upright = rotate(digits.images, torch.zeros(len(digits)), 32)
    start = time.process_time()
    prediction = model.predict(upright)
    speed = len(digits) / (time.process_time() - start)
    rotated = AnyAngle(digits)(model.network)
    exact = exactness(model.network, upright)
    draw(model, digits).save(PICTURE)

    table = Table(title=f"{model.card.name}: {len(digits):,} test digits", show_header=False)
    table.add_row("accuracy, upright", f"{accuracy(prediction.output, digits.labels).scores:.1f} %")
    table.add_row("accuracy, rotated by random angles", f"{rotated['accuracy']:.1f} %")
    mean, median = rotated["pose_error_mean"], rotated["pose_error_median"]
    table.add_row("pose error, mean / median", f"{mean:.1f} / {median:.1f} degrees")
    table.add_row("predictions changed by 90, 180 and 270 degrees", f"{exact.predictions_changed}")
    table.add_row("largest change of a score / an agreement / a pose",
                  f"{exact.scores:.0e} / {exact.activations:.0e} / {exact.poses:.0e}")  # fmt: skip
    table.add_row("speed, one thread", f"{speed:.0f} images per CPU-second")
    Console(width=100).print(table)
    print(f"Rotated digits with the predicted angle of each: {PICTURE.resolve()}")
    return 1 if exact.predictions_changed else 0


def draw(model: PoseModel, digits: Dataset) -> Image.Image:
    """One digit of each class per row, rotated in steps of 45 degrees; arrows point to where the model sees its top."""
    rows = [int((digits.labels == label).nonzero()[3]) for label in range(len(digits.classes))]
    degrees = torch.arange(COLUMNS) * 360.0 / COLUMNS
    side = 32 * SCALE + MARGIN
    sheet = Image.new("RGB", (COLUMNS * side + MARGIN, len(rows) * side + MARGIN), "white")
    for row, index in enumerate(rows):
        views = rotate(digits.images[[index] * COLUMNS], degrees, 32)
        prediction = model.predict(views)
        for column, (view, angle, label) in enumerate(zip(views, prediction.angles, prediction.labels, strict=True)):
            cell = Image.fromarray((view[0] * 255).byte().numpy()).resize((32 * SCALE,) * 2, Image.Resampling.BICUBIC)
            cell = cell.convert("RGB")
            correct = bool(label == digits.labels[index])
            if not math.isnan(angle):
                arrow(ImageDraw.Draw(cell), float(angle) + 90, "#ffb000" if correct else "#ff3030")
            sheet.paste(cell, (MARGIN + column * side, MARGIN + row * side))
    return sheet


def arrow(canvas: ImageDraw.ImageDraw, degrees: float, colour: str) -> None:
    """Draw an arrow from the centre of a cell, at an angle counter-clockwise from the right."""
    centre, length = 16 * SCALE, 12 * SCALE
    x, y = math.cos(math.radians(degrees)), -math.sin(math.radians(degrees))
    tip = (centre + length * x, centre + length * y)
    canvas.line([(centre, centre), tip], fill=colour, width=SCALE)
    wings = [
        (tip[0] - 4 * SCALE * (x * c - y * s), tip[1] - 4 * SCALE * (x * s + y * c))
        for c, s in ((math.cos(a), math.sin(a)) for a in (-0.45, 0.45))
    ]
    canvas.polygon([tip, *wings], fill=colour)


if __name__ == "__main__":
    sys.exit(main())
