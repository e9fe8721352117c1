"""Things that look the same after a part of a turn: `equicaps train` on drawings of them, and how well it reads angles.

Run: python benchmarks/symmetric.py [--minutes 2] [--json results/symmetric.json]. Bars, triangles, squares, hexagons,
washers and flags, which look the same after no part of a turn, are drawn on 40x40 pixels in random colours and sizes
and at random angles, which are not told to anyone: 300 of each for training and 25 for the test. `equicaps train` gets
the folder and a number of CPU-minutes, nothing else. Then 200 fresh things of each class are drawn twice, the second
time rotated by a random angle. The columns are the period that the training found, the mean error that the model states
for nine of ten angles, by how much its angles really miss the rotation, modulo the period of the predicted class (the
median, and what nine of ten stay within), how many stay within their stated error, and how many are classified
correctly.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from equicaps.images import angle_distance
from equicaps.inference import PoseModel, load_image_model
from equicaps.training.log import provenance

SIDE, SCALE = 40, 8
TRAINING, TEST, FRESH = 300, 25, 200
"""How many of each class are trained on, tested by the training, and drawn afresh."""
SIZES = (11.0, 17.0)
"""The smallest and the largest radius, in pixels."""
CONTRAST = 0.35
"""How far apart the brightnesses of thing and paper are at least."""
NOISE = 0.02

Pixels = NDArray[np.uint8]
Points = list[tuple[float, float]]


def regular(corners: int) -> Points:
    return [(math.cos(math.tau * k / corners), math.sin(math.tau * k / corners)) for k in range(corners)]


OUTLINES: dict[str, Points] = {
    "bar": [(-1, -0.3), (1, -0.3), (1, 0.3), (-1, 0.3)],
    "triangle": regular(3),
    "square": regular(4),
    "hexagon": regular(6),
    "washer": regular(180),
    "flag": [(-0.5, -0.9), (-0.2, -0.9), (-0.2, 0.1), (0.8, 0.3), (-0.2, 0.95), (-0.5, 0.95)],
}
"""Corners, within a circle of radius 1, from the right counter-clockwise; a washer also has a hole."""
TRUE_PERIODS = {"bar": 180, "triangle": 120, "square": 90, "hexagon": 60, "washer": 0, "flag": 360}


@dataclass(frozen=True)
class Thing:
    """Something that can be drawn at any angle."""

    shape: str
    radius: float
    colour: NDArray[np.float64]
    paper: NDArray[np.float64]

    @classmethod
    def random(cls, shape: str, generator: np.random.Generator) -> "Thing":
        while True:
            colour, paper = generator.uniform(0, 1, (2, 3))
            if abs(colour.mean() - paper.mean()) > CONTRAST:
                return cls(shape, generator.uniform(*SIZES), colour, paper)

    def draw(self, degrees: float, generator: np.random.Generator) -> Pixels:
        """The thing on its paper, rotated counter-clockwise, with noise."""
        mask = Image.new("L", (SCALE * SIDE, SCALE * SIDE))
        pen, radians = ImageDraw.Draw(mask), math.radians(degrees)

        def outline(scale: float) -> Points:
            c, s, middle = scale * math.cos(radians), scale * math.sin(radians), (SCALE * SIDE - 1) / 2
            return [(middle + c * x - s * y, middle - s * x - c * y) for x, y in OUTLINES[self.shape]]

        pen.polygon(outline(SCALE * self.radius), fill=255)
        if self.shape == "washer":
            pen.polygon(outline(SCALE * self.radius / 2), fill=0)
        share = np.asarray(mask.resize((SIDE, SIDE), Image.Resampling.BOX))[..., None] / 255
        pixels = self.paper + share * (self.colour - self.paper) + generator.normal(0, NOISE, (SIDE, SIDE, 3))
        return (255 * pixels.clip(0, 1)).round().astype(np.uint8)


def write_folder(folder: Path, counts: dict[str, int], seed: int) -> None:
    """Write ``train/CLASS/*.png`` and ``test/CLASS/*.png``, so many of each class."""
    generator = np.random.default_rng((seed, 0))
    for part, count in counts.items():
        for shape in OUTLINES:
            (folder / part / shape).mkdir(parents=True)
            for number in range(count):
                pixels = Thing.random(shape, generator).draw(generator.uniform(0, 360), generator)
                Image.fromarray(pixels).save(folder / part / shape / f"{number:03}.png")


def train(folder: Path, out: Path, budget: Iterable[str], seed: int) -> dict[str, Any]:
    """Run the command; returns its result."""
    words = ("train", str(folder), "--out", str(out), "--seed", str(seed), *budget)
    subprocess.run([sys.executable, "-m", "equicaps.cli.main", *words], check=True)
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


def measure(model: PoseModel, shape: str, count: int, seed: int) -> dict[str, Any]:
    """Draw fresh things of a class, each at two angles, and compare the angles that the model gives to both."""
    label = model.classes.index(shape)
    generator = np.random.default_rng((seed, 1, label))
    things = [Thing.random(shape, generator) for _ in range(count)]
    first, by = generator.uniform(0, 360, (2, count))
    drawn = [[thing.draw(angle, generator) for thing, angle in zip(things, angles, strict=True)]
             for angles in (first, first + by)]  # fmt: skip
    before, after = (model.predict([Image.fromarray(pixels) for pixels in images]) for images in drawn)
    off = angle_distance(after.angles, before.angles + torch.from_numpy(by).float(), after.period)
    symmetries = model.card.symmetries
    row = {
        "true_period": TRUE_PERIODS[shape],
        "period": 360.0 if symmetries is None else symmetries.periods[label].item(),
        "accuracy": 100 * (after.labels == label).double().mean().item(),
        "with_angle": int((~off.isnan()).sum()),
    }
    known = ~off.isnan()
    if known.any():
        row |= {"median": off[known].median().item(), "nine_of_ten": off[known].quantile(0.9).item()}
    if known.any() and after.angle_error is not None:
        stated = after.angle_error[known]
        row |= {
            "stated": stated.mean().item(),
            "within_stated": 100 * (off[known] <= stated).double().mean().item(),
        }
    return row


def show(rows: dict[str, dict[str, Any]]) -> None:
    """Print the figures of all classes."""
    print("class     period   stated  median  nine of ten  within stated  correct  with an angle")
    for shape, row in rows.items():
        stated, median, most, within = (
            row.get(name, math.nan) for name in ("stated", "median", "nine_of_ten", "within_stated")
        )
        print(
            f"{shape:<9} {row['period']:6.0f} {stated:8.1f} {median:7.1f} {most:12.1f} {within:12.1f} % "
            f"{row['accuracy']:6.1f} % {row['with_angle']:>14}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--minutes", type=float, default=2.0, help="CPU-minutes of training")
    parser.add_argument("--steps", type=int, help="train for so many steps instead")
    parser.add_argument("--images", type=int, default=TRAINING, help="training images of each class")
    parser.add_argument("--test-images", type=int, default=TEST, help="test images of each class")
    parser.add_argument("--fresh-images", type=int, default=FRESH, help="fresh things of each class")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    seed = arguments.seed
    budget = ("--minutes", arguments.minutes) if arguments.steps is None else ("--steps", arguments.steps)
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "things"), Path(place, "run")
        write_folder(folder, {"train": arguments.images, "test": arguments.test_images}, seed)
        result = train(folder, out, map(str, budget), seed)
        model = load_image_model(out)
    rows = {shape: measure(model, shape, arguments.fresh_images, seed) for shape in OUTLINES}
    show(rows)
    if arguments.json:
        settings = {"seed": seed, "cpu_minutes": result["cpu_seconds"] / 60, "steps": result["step"],
                    "images_of_each_class": arguments.images, "fresh_images_of_each_class": arguments.fresh_images,
                    "figures": result["figures"]}  # fmt: skip
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({**provenance(), **settings, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
