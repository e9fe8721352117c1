"""What the commands share: text and JSON for a terminal, and files that are never overwritten."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import typer

from equicaps._files import create_folder, write_bytes
from equicaps.errors import UsageError


def show_json(value: Any) -> None:
    """Print one JSON document; JSON has no NaN, so numbers that are not finite become null."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    text = json.dumps(_finite(plain), indent=1, allow_nan=False, ensure_ascii=False)
    typer.echo(re.sub(r"[\x7f-\x9f\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None  # false for NaN, too
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    return [_finite(entry) for entry in value] if isinstance(value, list | tuple) else value


def resolved(files: Iterable[Path]) -> frozenset[Path]:
    """Where these files are, links followed."""
    return frozenset(file.resolve() for file in files)


def new_file(path: Path, *, force: bool, inputs: frozenset[Path] = frozenset()) -> Path:
    """The path, if a result may be written there, which is not one of the :func:`resolved` inputs."""
    if inputs and path.resolve() in inputs:
        raise UsageError(f"{path} is an input and is never overwritten: choose another name.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it.")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists: choose another name, or replace it with --force.")
    return path


def picture_files(files: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Where the picture of each input goes; names that are taken are numbered."""
    targets: dict[Path, Path] = {}
    inputs, taken = resolved(files), set[Path]()
    for file in files:
        target, number = folder / f"{file.stem}-pose.png", 1
        while target.exists() or target in taken:
            number += 1
            target = folder / f"{file.stem}-pose-{number}.png"
        taken.add(target)
        targets[file] = new_file(target, force=False, inputs=inputs)
    return targets


def result_stems(files: Sequence[Path], inputs: Sequence[Path], out: Path, taken: Path) -> dict[Path, Path]:
    """The path of each result without its suffix; subfolders of inputs are kept, and equal names numbered.

    Args:
        files: the files.
        inputs: what was given: files, and folders of them.
        out: the folder for the results.
        taken: the name of another result.
    """
    folders = [folder for folder in inputs if folder.is_dir()]
    targets: dict[Path, Path] = {}
    seen: set[Path] = {taken.with_suffix("")}
    for file in files:
        inside = next((folder for folder in folders if file.is_relative_to(folder)), file.parent)
        wanted = out / file.relative_to(inside).with_suffix("")
        target, number = wanted, 1
        while target in seen:
            number += 1
            target = wanted.with_name(f"{wanted.name}-{number}")
        seen.add(target)
        targets[file] = target
    return targets


def check_out(out: Path, inputs: Sequence[Path]) -> None:
    """Refuse to write results among the inputs: they could overwrite them, and would be inputs the next time."""
    if out.is_file():
        raise UsageError(f"--out {out} is a file: name a folder.")
    for given in inputs:
        if same(given if given.is_dir() else given.parent, out):
            raise UsageError(f"--out {out} is the folder of the inputs: choose another one.")
        if given.is_dir() and out.resolve().is_relative_to(given.resolve()):
            raise UsageError(f"--out {out} lies inside the input {given}: choose a folder outside it.")


def write(path: Path, content: bytes) -> None:
    """Write a file in a folder that need not exist yet, complete or not at all."""
    create_folder(path.parent)
    write_bytes(path, content)


def same(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file, links followed."""
    return a.resolve() == b.resolve()
