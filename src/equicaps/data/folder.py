"""A user's own images, in one folder for each class or in a list."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Literal, NamedTuple

import torch

from equicaps._checks import is_printable
from equicaps.data.angles import Angles, angles_of_splits, merge_angles, read_angles
from equicaps.data.damaged import of_each
from equicaps.data.dataset import Dataset
from equicaps.data.reduced import Side, Watch, reduced
from equicaps.data.table import read_table
from equicaps.errors import NotFoundError, UsageError
from equicaps.images.background import background_of

Files = Mapping[str, Sequence[Path]]
"""The image files of every class."""


TEST_FRACTION = 0.2
"""The fraction of each class that is held out for testing, where no folder ``test`` says which."""


class Splits(NamedTuple):
    """A training and a test set with the same classes."""

    train: Dataset
    test: Dataset


class _Division(NamedTuple):
    """The files of both splits, how they were divided, remarks on them, and what was left out as a copy of which."""

    parts: dict[str, Files]
    how: str
    remarks: list[str]
    copies: dict[Path, Path]

    def with_remarks(self, remarks: Sequence[str]) -> "_Division":
        """The same with more remarks."""
        return self._replace(remarks=[*self.remarks, *remarks])


class Survey(NamedTuple):
    """What the headers of a folder's training images say."""

    images: int
    side: int
    """The median of the longer sides."""


def survey_folder(path: str | Path) -> Survey:
    """Count the training images of :func:`load_folder` and measure their sizes, without decoding any."""
    parts = _division(Path(path).expanduser(), TEST_FRACTION, 0).parts
    found = [file for files in parts["train"].values() for file in files]
    return Survey(len(found), _median_side(found))


def load_folder(
    path: str | Path,
    *,
    size: int | None = None,
    frame: int | None = None,
    channels: Literal[1, 3] | None = None,
    test_fraction: float = TEST_FRACTION,
    seed: int = 0,
    angles: str | Path | None = None,
    watch: Watch | None = None,
) -> Splits:
    """Images in class folders: ``DATA/train/cat/*.png`` and ``DATA/test/cat/*.png``, or ``DATA/cat/*.png``; or a list.

    A list is a CSV file with the columns ``file`` and ``label``, see :func:`equicaps.data.table.read_table`. If it has
    a column ``angle``, too, those are the known angles of the images; see :func:`equicaps.data.angles.read_angles`.

    The classes are the names of the folders, sorted. Without a folder ``test``, each class is divided by a hash of the
    seed and the file's name, so that adding images does not move others between training and test. Images are padded
    to squares and resized exactly as for a prediction; ``note`` of the result says what was done. Reading needs Pillow.

    Images are decoded once and kept, reduced, in the cache (see :mod:`equicaps.data.reduced`), from where they are read
    when they are needed: any number of them takes little memory. Values are rounded to multiples of 1/255, or of
    1/65535 if any image has 16 bits.

    Hidden files and folders (``.ipynb_checkpoints``) are ignored. Files of a class that have the same bytes are read
    once, for the test set if one of them is there; the same image in another encoding is not noticed.

    Args:
        path: the folder DATA, or a CSV file.
        size: side of the images; by default the median of their longer sides.
        frame: side to which images are resized before they are padded to ``size``; by default ``size`` itself.
        channels: 1 for grey, 3 for colour; by default colour if any image has colours.
        test_fraction: approximate fraction of each class for the test set; both sets get at least one image.
        seed: determines the division.
        angles: a CSV file with the columns ``file`` and ``angle``: the known angles of some or all images.
        watch: is called with how many images have been decoded and how many there are, unless the cache has them.

    Raises:
        FileError: the cache cannot be written; the message says why.
        DamagedFileError: an image cannot be read, or is too large to be read safely; the message names it.
        UsageError: something is wrong with the folders or the list; the message says what.
    """
    folder = Path(path).expanduser()
    if not folder.is_dir() and not is_table(folder):
        raise NotFoundError(
            f"{folder} is not a folder; expected a folder that contains a folder of images for each class, or a CSV "
            "file with the columns 'file' and 'label'."
        )
    if not 0 < test_fraction < 1:
        raise UsageError(f"load_folder: test_fraction must lie between 0 and 1, but is {test_fraction}.")
    if size is not None and size < 1:
        raise UsageError(f"load_folder: size must be at least 1 pixel, but is {size}.")
    if not is_printable(name := folder.resolve().name):
        raise UsageError(f"the name of the folder {name!r} has characters that cannot be printed; rename it.")
    parts, how, remarks, copies = _division(folder, test_fraction, seed)
    classes = tuple(parts["train"])
    files = sorted({file for part in parts.values() for named in part.values() for file in named})
    lists = {part: [file for entry in classes for file in named[entry]] for part, named in parts.items()}
    known, said = angles_of_splits(_angles(folder, angles), lists, copies)
    side = size or _median_side(files)
    found = reduced(folder, files, Side(channels, side, frame or side), watch)
    note, background = _note(found.sizes, side, found.images.shape[1]), background_of(found.brightnesses)
    if ignored := 0 if is_table(folder) else _ignored(folder):
        remarks.append(f"{ignored} files ignored that are not images")
    note = "; ".join((note, *remarks, *said))
    places, sets = {file: place for place, file in enumerate(files)}, []
    for part, named in parts.items():
        images = found.images.chosen([places[file] for file in lists[part]])
        labels = torch.tensor([label for label, entry in enumerate(classes) for _ in named[entry]])
        sets.append(Dataset(f"{name} ({part}{how})", images, labels, classes, note, background, known[part]))
    return Splits(*sets)


def _angles(folder: Path, given: str | Path | None) -> Angles:
    """The known angles from the column of a list of images, and from a list of angles."""
    lists = [folder] if is_table(folder) and read_table(folder).has_angles else []
    return merge_angles(map(read_angles, lists + ([] if given is None else [Path(given).expanduser()])))


def _division(folder: Path, test_fraction: float, seed: int) -> _Division:
    if is_table(folder):
        table = read_table(folder)
        divided = _divided(folder.parent, table.files, test_fraction, seed)
        return divided._replace(remarks=table.remarks + divided.remarks)
    given = [name for name in ("train", "test") if (folder / name).is_dir()]
    if given == ["test"]:
        raise UsageError(
            f"{folder} has a folder 'test', but no 'train'; add one, or put the classes into {folder} itself."
        )
    if len(given) == 2:
        parts = {part: _classes(folder / part) for part in ("train", "test")}
        if list(parts["train"]) != list(parts["test"]):
            differing = sorted(set(parts["train"]) ^ set(parts["test"]))
            raise UsageError(
                f"{folder}: train and test must have the same classes, but differ in {', '.join(differing)}."
            )
        return _without_copies(folder, parts).with_remarks(_beside(folder, given))
    root = folder / "train" if given else folder
    return _divided(root, _classes(root), test_fraction, seed).with_remarks(_beside(folder, given) if given else [])


def is_table(path: Path) -> bool:
    """Whether this is a list of images."""
    return path.suffix.lower() == ".csv" and path.is_file()


def _divided(root: Path, given: Files, test_fraction: float, seed: int) -> _Division:
    """Each class divided by a hash of the files' names."""
    whole = _without_copies(root, {"": given})
    classes = whole.parts[""]
    train, test = {}, {}
    for name, files in classes.items():
        if len(files) < 2:
            raise UsageError(
                f"{root.resolve().name}: the class {name!r} has one image; at least two different ones are needed, one "
                "of them for the test set."
            )
        drawn = {file: _drawn(seed, _shown(file, root)) for file in files}
        count = sum(value < test_fraction for value in drawn.values())
        ordered = sorted(files, key=drawn.__getitem__)
        count = min(max(1, count), len(files) - 1)
        test[name], train[name] = sorted(ordered[:count]), sorted(ordered[count:])
    how = f", about {test_fraction:.0%} of each class for test, seed {seed}"
    return whole._replace(parts={"train": train, "test": test}, how=how)


def _shown(file: Path, root: Path) -> Path:
    """The path relative to the root, if the file lies below it."""
    return file.relative_to(root) if file.is_relative_to(root) else file


def _drawn(seed: int, path: Path) -> float:
    """A number in [0, 1) that depends on the file's name alone, whatever other images come and go."""
    digest = hashlib.sha256(f"{seed} {path.as_posix()}".encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _beside(folder: Path, parts: Sequence[str]) -> list[str]:
    """A remark on each folder that is not read."""
    others = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and _visible(entry, folder))
    return [f"folder {name!r} beside {' and '.join(parts)} ignored" for name in others if name not in parts]


def _classes(folder: Path) -> Files:
    from equicaps.images.decode import IMAGE_SUFFIXES

    classes = {
        entry.name: sorted(file for file in _files(entry) if file.suffix.lower() in IMAGE_SUFFIXES)
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and _visible(entry, folder)
    }
    if len(classes) < 2:
        found = f"only {next(iter(classes))!r}" if classes else "none"
        raise UsageError(f"{folder}: at least two classes are needed, each a folder of images; found {found}.")
    for name, files in classes.items():
        if not is_printable(name):
            raise UsageError(f"{folder}: the folder {name!r} has characters that cannot be printed; rename it.")
        if not files:
            kinds = ", ".join(sorted(IMAGE_SUFFIXES))
            raise UsageError(f"{folder / name} holds no image ({kinds}); add some or remove the folder.")
    return classes


def _without_copies(folder: Path, parts: dict[str, Files]) -> _Division:
    """Each content once in a class, in the last split that has it, and remarks on what was found."""
    contents = _contents(file for files in parts.values() for named in files.values() for file in named)
    kept: dict[str, dict[str, list[Path]]] = {part: {} for part in parts}
    first: dict[object, tuple[str, Path]] = {}
    copies: dict[Path, Path] = {}
    contradictions = []
    for name in next(iter(parts.values())):
        seen: dict[object, Path] = {}
        for part in reversed(parts):
            kept[part][name] = []
            for file in parts[part][name]:
                if contents[file] in seen:
                    copies[file] = seen[contents[file]]
                    continue
                seen[contents[file]] = file
                kept[part][name].append(file)
                other, same = first.setdefault(contents[file], (name, file))
                if other != name:
                    contradictions.append(f"{_shown(same, folder)} and {_shown(file, folder)}")
            if not kept[part][name]:
                raise UsageError(f"{folder / part / name} holds only copies of test images; add other images.")
    remarks = [f"{len(copies)} copies left out"] if copies else []
    if contradictions:
        remarks.append(f"{len(contradictions)} files are the same in different classes, such as {contradictions[0]}")
    return _Division(dict(kept), "", remarks, copies)


def _contents(files: Iterable[Path]) -> dict[Path, object]:
    """A key for each file, equal for equal bytes; only files of equal sizes are read."""
    sizes = {file: file.stat().st_size for file in files}
    often = Counter(sizes.values())
    return {
        file: (size, hashlib.sha256(file.read_bytes()).digest() if often[size] > 1 else b"")
        for file, size in sizes.items()
    }


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder that are neither hidden nor in a hidden folder."""
    return (file for file in folder.rglob("*") if file.is_file() and _visible(file, folder))


def _visible(path: Path, root: Path) -> bool:
    return not any(part.startswith(".") for part in path.relative_to(root).parts)


def _ignored(folder: Path) -> int:
    from equicaps.images.decode import IMAGE_SUFFIXES

    return sum(file.suffix.lower() not in IMAGE_SUFFIXES for file in _files(folder))


def _median_side(files: Sequence[Path]) -> int:
    """The median of the longer sides, by the headers."""
    from equicaps.images.decode import image_size

    return median_low(sorted(map(max, of_each(image_size, files))))


def _note(sizes: Sequence[tuple[int, int]], side: int, channels: int) -> str:
    """How many images of both splits were resized, to which size and from which."""
    count, changed = len(sizes), [pair for pair in sizes if pair != (side, side)]
    colours = "colour" if channels == 3 else "grey"
    if not changed:
        return f"{count} {colours} images in all, {side}x{side}, unchanged"
    by_area = sorted(set(changed), key=lambda pair: (pair[0] * pair[1], pair))
    names = [f"{width}x{height}" for width, height in by_area]
    origin = " or ".join(names) if len(names) < 3 else f"sizes between {names[0]} and {names[-1]}"
    which = "each" if len(changed) == count else f"{len(changed)} of them"
    note = f"{count} {colours} images in all, {which} resized to {side}x{side} from {origin}"
    padded = sum(width != height for width, height in sizes)
    return f"{note} ({padded} padded to a square)" if padded else note
