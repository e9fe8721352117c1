"""Folders of images as a stranger would bring them: blood cells, coins, radio galaxies, digits on paper."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from equicaps.data.catalogue import CATALOGUE

CELLS = ("normal", "macrocyte", "microcyte", "spherocyte", "target cell", "stomatocyte", "ovalocyte", "teardrop",
         "burr cell", "schistocyte", "uncategorised", "hypochromia", "elliptocyte")  # fmt: skip
COINS = ("10c", "1c", "1e", "20c", "2c", "2e", "50c", "5c")
GALAXIES = ("FRI", "FRII", "Compact", "Bent")
DIGITS_PER_CLASS, TEST_DIGITS_PER_CLASS = 300, 100

Images = NDArray[np.uint8]
Set = tuple[Images, list[str], NDArray[np.bool_]]
"""The images, their classes, and which of them are for testing."""


def source(*names: str) -> Path:
    """A file below ``EQUICAPS_DATA``."""
    if "EQUICAPS_DATA" not in os.environ:
        raise SystemExit("error: EQUICAPS_DATA must name the folder of the data sets; see docs/data.md.")
    return Path(os.environ["EQUICAPS_DATA"]).joinpath(*names)


def cells() -> Set:
    """Red blood cells in colour, 36x36, on a bright ground; every fifth smear is for testing."""
    with np.load(source("chula_rbc12", "chula36.npz")) as file:
        images, codes, smears = (file[name] for name in file.files[:3])
    named = codes != CELLS.index("uncategorised")
    return images[named], [CELLS[code] for code in codes[named]], smears[named] % 5 == 0


def coins() -> Set:
    """Euro coins in colour, 64x64, both faces; the division is that of the source."""
    with np.load(source("euro_coins", "coins64.npz")) as file:
        images, codes, test = (file[name] for name in file.files[:3])
    return images, [COINS[code] for code in codes], test.astype(bool)


def galaxies() -> Set:
    """The middle 64x64 pixels of radio galaxies; the division is that of the source, validation images train."""
    with np.load(source("radio_galaxies", "first_radio_galaxies.npz")) as file:
        images, codes, split = (file[name] for name in ("images", "labels", "split"))
    middle = slice(300 // 2 - 32, 300 // 2 + 32)
    return images[:, middle, middle], [GALAXIES[code] for code in codes], split == "test"


def paper() -> Set:
    """Digits of MNIST written on paper (regenerated, seed 0): dark on a bright, uneven, grained ground, 48x48."""
    generator = np.random.default_rng(0)
    images, names, test = [], [], []
    for part, count in (("train", DIGITS_PER_CLASS), ("test", TEST_DIGITS_PER_CLASS)):
        digits = CATALOGUE["mnist"].load(part)
        for label, name in enumerate(digits.classes):
            for ink in digits.images[digits.labels == label][:count, 0].numpy():
                images.append(_on_paper(ink, generator))
                names.append(name)
                test.append(part == "test")
    return np.stack(images), names, np.array(test)


def _on_paper(ink: NDArray[np.float32], generator: np.random.Generator) -> Images:
    uneven = generator.uniform(0.75, 0.95, (4, 4)).astype(np.float32)
    ground = np.asarray(Image.fromarray(uneven).resize((48, 48), Image.Resampling.BICUBIC))
    ground = ground + generator.normal(0, 0.03, ground.shape)
    drawn = np.zeros((48, 48))
    drawn[10:38, 10:38] = ink
    darkness = generator.uniform(0.5, 0.9)
    return (255 * (ground * (1 - darkness * drawn)).clip(0, 1)).round().astype(np.uint8)


SETS: dict[str, Callable[[], Set]] = {"cells": cells, "coins": coins, "galaxies": galaxies, "paper": paper}


def write_set(name: str, folder: Path) -> Path:
    """Write a set as ``folder/name/train/CLASS/0001.png`` and ``.../test/...``, unless it is there already."""
    place = folder / name
    if (place / "done").exists():
        return place
    images, names, test = SETS[name]()
    for number, (image, label, is_test) in enumerate(zip(images, names, test, strict=True)):
        file = place / ("test" if is_test else "train") / label / f"{number:05}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
    (place / "done").touch()
    return place
