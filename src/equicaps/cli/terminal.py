"""What the commands share: text and JSON for a terminal, and files that are never overwritten."""

import json
import re
from collections.abc import Iterable
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


def new_file(path: Path, *, force: bool, inputs: Iterable[Path] = ()) -> Path:
    """The path, if a result may be written there."""
    if any(same(path, given) for given in inputs):
        raise UsageError(f"{path} is an input and is never overwritten: choose another name.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder: name a file in it.")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists: choose another name, or replace it with --force.")
    return path


def write(path: Path, content: bytes) -> None:
    """Write a file in a folder that need not exist yet, complete or not at all."""
    create_folder(path.parent)
    write_bytes(path, content)


def same(a: Path, b: Path) -> bool:
    """Whether two paths lead to one file, links followed."""
    return a.resolve() == b.resolve()
