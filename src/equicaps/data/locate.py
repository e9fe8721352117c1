"""Where data files are: an explicit folder, EQUICAPS_DATA, the user's cache, and then what can be fetched."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from equicaps.errors import FetchError, NotFoundError

Fetch = Callable[[Path, Sequence[str]], None]
"""Put the named files into the folder, or raise FetchError."""


class Collection(NamedTuple):
    """A set of files that belong together.

    Attributes:
        name: for messages.
        folder: its folder below ``EQUICAPS_DATA`` and the cache.
        fetch: gets missing files.
        instead: what to do where they cannot be had.
    """

    name: str
    folder: str
    fetch: Fetch
    instead: str = ""


def cache_folder() -> Path:
    """``EQUICAPS_CACHE``, or the folder ``equicaps`` where this system keeps caches."""
    if given := os.environ.get("EQUICAPS_CACHE"):
        return Path(given).expanduser()
    if given := os.environ.get("XDG_CACHE_HOME"):
        return Path(given) / "equicaps"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "equicaps"
    if sys.platform == "win32" and (given := os.environ.get("LOCALAPPDATA")):
        return Path(given) / "equicaps"
    return Path.home() / ".cache" / "equicaps"


def locate(collection: Collection, files: Sequence[str], root: str | Path | None = None) -> list[Path]:
    """The files' paths, each as it is or gzipped (``.gz``); fetched into the cache where they are nowhere.

    An explicit folder is the only one looked at, and nothing is fetched into it. Otherwise ``EQUICAPS_DATA`` comes
    first, then the cache. All files come from one folder. ``EQUICAPS_OFFLINE=1`` forbids fetching.

    Raises:
        NotFoundError: saying which file to put where.
    """
    cache = cache_folder() / collection.folder
    if found := look(collection, files, root):
        return found
    folders = _searched(collection, root)
    looked = ", ".join(str(folder) for folder in folders)
    if root is not None:
        best = max(folders, key=lambda folder: sum(_find(folder, file) is not None for file in files))
        raise NotFoundError(
            f"{collection.name}: {_names(_missing(best, files))} not found; looked in {looked}. Put it there, or pass "
            "no folder: then EQUICAPS_DATA and the cache are searched, and what is missing is fetched."
        )
    missing = _missing(cache, files)
    try:
        if os.environ.get("EQUICAPS_OFFLINE", "0") not in ("", "0"):
            raise FetchError("EQUICAPS_OFFLINE forbids fetching")
        collection.fetch(cache, missing)
    except OSError as error:
        raise NotFoundError(
            f"{collection.name}: {_names(missing)} not found in {looked}, and could not be fetched ({error}). Put it "
            f"into {cache}, or set EQUICAPS_DATA to a folder that holds it, by itself or in a folder "
            f"{collection.folder!r}. {collection.instead}".rstrip()
        ) from error
    return [path for file in files if (path := _find(cache, file))]


def look(collection: Collection, files: Sequence[str], root: str | Path | None = None) -> list[Path]:
    """Where :func:`locate` finds the files without fetching; nothing unless all are there."""
    for folder in _searched(collection, root):
        found = [path for file in files if (path := _find(folder, file))]
        if len(found) == len(files):
            return found
    return []


def _searched(collection: Collection, root: str | Path | None) -> list[Path]:
    if root is not None:
        return _folders(root, collection)
    given = os.environ.get("EQUICAPS_DATA")
    return [*(_folders(given, collection) if given else []), cache_folder() / collection.folder]


def _folders(root: str | Path, collection: Collection) -> list[Path]:
    given = Path(root).expanduser()
    return [given / collection.folder, given]


def _find(folder: Path, file: str) -> Path | None:
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def _missing(folder: Path, files: Sequence[str]) -> list[str]:
    return [file for file in files if _find(folder, file) is None]


def _names(files: Sequence[str]) -> str:
    shown = ", ".join(files[:4])
    return shown if len(files) <= 4 else f"{shown} and {len(files) - 4} more"
