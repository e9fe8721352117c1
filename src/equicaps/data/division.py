"""Files in one folder for each class, divided into a training and a test set without copies in both."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from equicaps._checks import is_printable
from equicaps.errors import UsageError

Files = Mapping[str, Sequence[Path]]
"""The files of every class."""

TEST_FRACTION = 0.2
"""The fraction of each class that is held out for testing, where no folder ``test`` says which."""


class Kind(NamedTuple):
    """What a folder holds.

    Attributes:
        noun: in the singular, for messages.
        suffixes: of its files, in lower case; others are ignored.
    """

    noun: str
    suffixes: frozenset[str]


class Division(NamedTuple):
    """The files of both splits, how they were divided, remarks on them, and what was left out as a copy of which."""

    parts: dict[str, Files]
    how: str
    remarks: list[str]
    copies: dict[Path, Path]

    def with_remarks(self, remarks: Sequence[str]) -> "Division":
        """The same with more remarks."""
        return self._replace(remarks=[*self.remarks, *remarks])


def divide_folder(folder: Path, kind: Kind, test_fraction: float, seed: int) -> Division:
    """``DATA/train/cat/*`` and ``DATA/test/cat/*`` as they are; ``DATA/cat/*`` or a ``train`` alone, divided.

    Args:
        folder: DATA.
        kind: what it holds.
        test_fraction: approximate fraction of each class for the test set; both sets get at least one file.
        seed: determines the division.
    """
    given = [name for name in ("train", "test") if (folder / name).is_dir()]
    if given == ["test"]:
        raise UsageError(
            f"{folder} has a folder 'test', but no 'train'; add one, or put the classes into {folder} itself."
        )
    if len(given) == 2:
        parts = {part: _classes(folder / part, kind) for part in ("train", "test")}
        if list(parts["train"]) != list(parts["test"]):
            differing = sorted(set(parts["train"]) ^ set(parts["test"]))
            raise UsageError(
                f"{folder}: train and test must have the same classes, but differ in {', '.join(differing)}."
            )
        return _without_copies(folder, parts, kind).with_remarks(_beside(folder, given))
    root = folder / "train" if given else folder
    found = divide(root, _classes(root, kind), kind, test_fraction, seed)
    return found.with_remarks(_beside(folder, given) if given else [])


def divide(root: Path, given: Files, kind: Kind, test_fraction: float, seed: int) -> Division:
    """Each class divided by a hash of the files' names, see :func:`divide_folder`."""
    whole = _without_copies(root, {"": given}, kind)
    classes = whole.parts[""]
    train, test = {}, {}
    for name, files in classes.items():
        if len(files) < 2:
            raise UsageError(
                f"{root.resolve().name}: the class {name!r} has one {kind.noun}; at least two different ones are "
                "needed, one of them for the test set."
            )
        drawn = {file: _drawn(seed, _shown(file, root)) for file in files}
        count = sum(value < test_fraction for value in drawn.values())
        ordered = sorted(files, key=drawn.__getitem__)
        count = min(max(1, count), len(files) - 1)
        test[name], train[name] = sorted(ordered[:count]), sorted(ordered[count:])
    how = f", about {test_fraction:.0%} of each class for test, seed {seed}"
    return whole._replace(parts={"train": train, "test": test}, how=how)


def check_request(caller: str, folder: Path, test_fraction: float) -> str:
    """The name of the folder; raise if it cannot be printed, or if the fraction is none."""
    if not 0 < test_fraction < 1:
        raise UsageError(f"{caller}: test_fraction must lie between 0 and 1, but is {test_fraction}.")
    if not is_printable(name := folder.resolve().name):
        raise UsageError(f"the name of the folder {name!r} has characters that cannot be printed; rename it.")
    return name


def remark_on_ignored(folder: Path, kind: Kind) -> list[str]:
    """A remark on the files of other kinds, if there are any."""
    ignored = sum(file.suffix.lower() not in kind.suffixes for file in _files(folder))
    return [f"{ignored} files ignored that are not {kind.noun}s"] if ignored else []


def _shown(file: Path, root: Path) -> Path:
    """The path relative to the root, if the file lies below it."""
    return file.relative_to(root) if file.is_relative_to(root) else file


def _drawn(seed: int, path: Path) -> float:
    """A number in [0, 1) that depends on the file's name alone, whatever other files come and go."""
    digest = hashlib.sha256(f"{seed} {path.as_posix()}".encode(errors="surrogateescape")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _beside(folder: Path, parts: Sequence[str]) -> list[str]:
    """A remark on each folder that is not read."""
    others = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and _visible(entry, folder))
    return [f"folder {name!r} beside {' and '.join(parts)} ignored" for name in others if name not in parts]


def _classes(folder: Path, kind: Kind) -> Files:
    classes = {
        entry.name: sorted(file for file in _files(entry) if file.suffix.lower() in kind.suffixes)
        for entry in sorted(folder.iterdir())
        if entry.is_dir() and _visible(entry, folder)
    }
    if len(classes) < 2:
        found = f"only {next(iter(classes))!r}" if classes else "none"
        raise UsageError(f"{folder}: at least two classes are needed, each a folder of {kind.noun}s; found {found}.")
    for name, files in classes.items():
        if not is_printable(name):
            raise UsageError(f"{folder}: the folder {name!r} has characters that cannot be printed; rename it.")
        if not files:
            suffixes = ", ".join(sorted(kind.suffixes))
            raise UsageError(f"{folder / name} holds no {kind.noun} ({suffixes}); add some or remove the folder.")
    return classes


def _without_copies(folder: Path, parts: dict[str, Files], kind: Kind) -> Division:
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
                raise UsageError(
                    f"{folder / part / name} holds only copies of test {kind.noun}s; add other {kind.noun}s."
                )
    remarks = [f"{len(copies)} copies left out"] if copies else []
    if contradictions:
        remarks.append(f"{len(contradictions)} files are the same in different classes, such as {contradictions[0]}")
    return Division(dict(kept), "", remarks, copies)


def _contents(files: Iterable[Path]) -> dict[Path, object]:
    """A key for each file, equal for equal bytes; only files of equal sizes are read."""
    sizes = {file: file.stat().st_size for file in files}
    often = Counter(sizes.values())
    return {file: (size, _digest(file) if often[size] > 1 else b"") for file, size in sizes.items()}


def _digest(file: Path) -> bytes:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").digest()  # in pieces: it may be larger than the memory


def _files(folder: Path) -> Iterator[Path]:
    """All files below a folder that are neither hidden nor in a hidden folder."""
    return (file for file in folder.rglob("*") if file.is_file() and _visible(file, folder))


def _visible(path: Path, root: Path) -> bool:
    return not any(part.startswith(".") for part in path.relative_to(root).parts)
