"""Where data files are: in an explicit folder, in EQUICAPS_DATA or in the user's cache, to which they are fetched."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from equicaps._cache import cache_folder
from equicaps._files import lock_folder
from equicaps.data.fetch import Source, fetch
from equicaps.errors import FetchError, NotFoundError


class Collection(NamedTuple):
    """A set of files that belong together.

    Attributes:
        name: for messages.
        folder: the name of its folder below ``EQUICAPS_DATA`` and the cache.
        sources: the sources of the given files, by name, in the order in which they are tried.
        instead: what to do if the files cannot be fetched.
    """

    name: str
    folder: str
    sources: Callable[[Sequence[str]], Mapping[str, Source]]
    instead: str = ""


def locate(collection: Collection, files: Sequence[str], root: str | Path | None = None) -> list[Path]:
    """The paths of the files, each as it is or gzipped (``.gz``); files that are nowhere are fetched into the cache.

    If a folder is given, only this folder is searched, and nothing is fetched. Otherwise ``EQUICAPS_DATA`` is searched
    first, and then the cache. All files come from one folder. ``EQUICAPS_OFFLINE=1`` forbids fetching.

    Raises:
        NotFoundError: saying which files to put where.
    """
    if found := look(collection, files, root):
        return found
    searched = _searched(collection, root)
    looked = ", ".join(map(str, searched))
    if root is not None:
        fewest = min((_missing(folder, files) for folder in searched), key=len)
        raise NotFoundError(
            f"{collection.name}: {_names(fewest)} not found; looked in {looked}. Put the missing files there, or pass "
            "no folder: then EQUICAPS_DATA and the cache are searched, and missing files are fetched."
        )
    cache = searched[-1]
    missing = _missing(cache, files)
    try:
        if os.environ.get("EQUICAPS_OFFLINE", "0") not in ("", "0"):
            raise FetchError("EQUICAPS_OFFLINE forbids fetching")
        with lock_folder(cache, wait=True):
            if missing := _missing(cache, files):  # unless another process fetched them in the meantime
                fetch(cache, collection.sources(missing))
    except OSError as error:
        raise NotFoundError(
            f"{collection.name}: {_names(missing)} not found in {looked}, and could not be fetched ({error}). Put the "
            f"missing files into {cache}, or set EQUICAPS_DATA to a folder that holds them, directly or in a folder "
            f"{collection.folder!r}. {collection.instead}".rstrip()
        ) from error
    return _found(cache, files)


def look(collection: Collection, files: Sequence[str], root: str | Path | None = None) -> list[Path]:
    """The paths that :func:`locate` finds without fetching; none unless all files are there."""
    every = (_found(folder, files) for folder in _searched(collection, root))
    return next((found for found in every if len(found) == len(files)), [])


def _searched(collection: Collection, root: str | Path | None) -> list[Path]:
    if root is not None:
        return [Path(root).expanduser() / collection.folder, Path(root).expanduser()]
    given = os.environ.get("EQUICAPS_DATA")
    return [*(_searched(collection, given) if given else []), cache_folder() / collection.folder]


def _find(folder: Path, file: str) -> Path | None:
    return next((path for path in (folder / file, folder / f"{file}.gz") if path.is_file()), None)


def _found(folder: Path, files: Sequence[str]) -> list[Path]:
    return [path for file in files if (path := _find(folder, file))]


def _missing(folder: Path, files: Sequence[str]) -> list[str]:
    return [file for file in files if _find(folder, file) is None]


def _names(files: Sequence[str]) -> str:
    shown = ", ".join(files[:4])
    return shown if len(files) <= 4 else f"{shown} and {len(files) - 4} more"
