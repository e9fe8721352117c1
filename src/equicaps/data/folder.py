"""Your own images: one folder for each class."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from equicaps.data.dataset import Dataset

Files = Mapping[str, Sequence[Path]]
"""The image files of each class."""


class Splits(NamedTuple):
    """A training and a test set with the same classes."""

    train: Dataset
    test: Dataset


def load_folder(
    path: str | Path,
    *,
    size: int | None = None,
    channels: Literal[1, 3] | None = None,
    test_fraction: float = 0.2,
    seed: int = 0,
) -> Splits:
    """Images in class folders: ``DATA/train/cat/*.png`` and ``DATA/test/cat/*.png``, or ``DATA/cat/*.png``.

    Classes are the folders' names, sorted. Without folders ``train`` and ``test``, each class is divided at random.
    Images are fitted into one square; ``note`` of the result says what was done. Reading needs Pillow.

    Args:
        path: the folder DATA.
        size: side of the images; by default the median of their longer sides.
        channels: 1 for grey, 3 for colour; by default colour if any image has colours.
        test_fraction: of each class, for the test set; at least one image, and one for training.
        seed: of the division.

    Raises:
        DamagedFileError: naming an image that cannot be read, or is too large to be read safely.
        ValueError: saying what is wrong with the folders.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder; expected one with a folder of images for each class.")
    if not 0 < test_fraction < 1:
        raise ValueError(f"load_folder: test_fraction must lie between 0 and 1, but is {test_fraction}.")
    if size is not None and size < 1:
        raise ValueError(f"load_folder: size must be at least 1 pixel, but is {size}.")
    parts, how = _parts(folder, test_fraction, seed)
    classes = tuple(parts["train"])
    images, labels, note = _read(parts, classes, size, channels)
    ignored = _ignored(folder)
    if ignored:
        note = f"{note}; {ignored} files that are not images ignored"
    name = folder.resolve().name
    return Splits(*(Dataset(f"{name} ({part}{how})", images[part], labels[part], classes, note) for part in parts))


def _parts(folder: Path, test_fraction: float, seed: int) -> tuple[dict[str, Files], str]:
    """Files of both parts, and how they were divided."""
    given = [name for name in ("train", "test") if (folder / name).is_dir()]
    if len(given) == 1:
        other = "test" if given == ["train"] else "train"
        raise ValueError(
            f"{folder} has a folder {given[0]!r}, but no {other!r}; add it, or put the classes into {folder}."
        )
    if given:
        parts = {part: _classes(folder / part) for part in ("train", "test")}
        if list(parts["train"]) != list(parts["test"]):
            differing = sorted(set(parts["train"]) ^ set(parts["test"]))
            raise ValueError(
                f"{folder}: train and test must have the same classes, but differ in {', '.join(differing)}."
            )
        return parts, ""
    classes = _classes(folder)
    generator = random.Random(seed)
    train, test = {}, {}
    for name, files in classes.items():
        if len(files) < 2:
            raise ValueError(f"{folder / name} holds one image; at least two are needed, one of them for the test set.")
        shuffled = generator.sample(files, len(files))
        count = min(max(1, round(len(files) * test_fraction)), len(files) - 1)
        test[name], train[name] = sorted(shuffled[:count]), sorted(shuffled[count:])
    return {"train": train, "test": test}, f", {test_fraction:.0%} of each class for test, seed {seed}"


def _classes(folder: Path) -> Files:
    from equicaps.data.images import SUFFIXES

    classes = {
        entry.name: sorted(file for file in entry.rglob("*") if file.suffix.lower() in SUFFIXES and _visible(file))
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and _visible(entry)
    }
    if len(classes) < 2:
        found = f"only {next(iter(classes))!r}" if classes else "none"
        raise ValueError(f"{folder}: at least two classes are needed, each a folder of images; found {found}.")
    for name, files in classes.items():
        if not files:
            kinds = ", ".join(sorted(SUFFIXES))
            raise ValueError(f"{folder / name} holds no image ({kinds}); add some or remove the folder.")
    return classes


def _visible(path: Path) -> bool:
    return not path.name.startswith(".")


def _ignored(folder: Path) -> int:
    from equicaps.data.images import SUFFIXES

    files = (file for file in folder.rglob("*") if file.is_file() and _visible(file))
    return sum(file.suffix.lower() not in SUFFIXES for file in files)


def _read(
    parts: dict[str, Files], classes: tuple[str, ...], size: int | None, channels: int | None
) -> tuple[dict[str, Tensor], dict[str, Tensor], str]:
    from equicaps.data.images import image_size, read_image

    files = {part: [file for name in classes for file in parts[part][name]] for part in parts}
    sizes = [image_size(file) for part in files.values() for file in part]
    side = size or median_low(sorted(max(pair) for pair in sizes))
    read = {part: [read_image(file, side) for file in files[part]] for part in files}
    depth = channels or max(len(image) for part in read.values() for image in part)
    images = {part: torch.stack([_with_channels(image, depth) for image in read[part]]) for part in read}
    labels = {
        part: torch.tensor([label for label, name in enumerate(classes) for _ in parts[part][name]]) for part in parts
    }
    scaled, padded = sum(max(pair) != side for pair in sizes), sum(pair[0] != pair[1] for pair in sizes)
    done = [f"{scaled} scaled" * bool(scaled), f"{padded} padded with black" * bool(padded)]
    note = f"{len(sizes)} images of {side}x{side}, {'colour' if depth == 3 else 'grey'}"
    return images, labels, ": ".join((note, ", ".join(filter(None, done)) or "none changed"))


def _with_channels(image: Tensor, depth: int) -> Tensor:
    if len(image) == depth:
        return image
    if depth == 3:
        return image.expand(3, -1, -1)
    red, green, blue = image  # as Pillow and television (ITU-R 601) weigh them
    return (0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(0)
