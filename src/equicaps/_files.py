"""Files that are written completely or not at all, folders that one process at a time may use, and what is in them."""

import contextlib
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from filelock import FileLock, Timeout

from equicaps.errors import DamagedFileError, EquicapsError, FileError, NotFoundError, UsageError

LOCK = ".lock"
CANNOT_LOCK = (errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS)
"""The errors of network drives that support no locks."""


def write_bytes(path: Path, content: bytes, *, keep: Path | None = None) -> None:
    """Write all of the content, or leave the file unchanged.

    The result survives a power cut where the system allows it. Only one process may write at a time, see
    :func:`lock_folder`.

    Args:
        path: the file.
        content: what to write.
        keep: where the old file is kept. Between two renames only this one exists, so readers have to try both names.
    """
    with written(path, keep=keep) as file:
        file.write(content)


@contextlib.contextmanager
def written(path: Path, *, keep: Path | None = None) -> Iterator[BinaryIO]:
    """Like :func:`write_bytes`, for content that does not fit into memory: a file that takes its name at the end."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.unlink(missing_ok=True)  # whatever it is: to open a pipe would take forever
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep is not None and path.exists():
            os.replace(path, keep)
        os.replace(partial, path)
        _sync(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            partial.unlink()
        if isinstance(error, OSError) and not isinstance(error, EquicapsError):
            raise FileError(explain(path, error)) from error
        raise


def check_regular(path: Path) -> None:
    """Raise if this exists and is something else than a file: a pipe would never end, and a device may not either.

    Raises:
        DamagedFileError: it is a folder, pipe, socket or device.
    """
    if path.is_dir():
        raise DamagedFileError(f"{path} is a folder; name the files in it instead.")
    if path.exists() and not path.is_file():
        raise DamagedFileError(f"{path} is refused: it is not a file but a pipe, socket or device.")


def write_json(path: Path, content: Any) -> None:
    """Write a JSON document completely or not at all."""
    write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())


def rename(path: Path, target: Path) -> None:
    """Rename a file, replacing the target."""
    try:
        os.replace(path, target)
        _sync(path.parent)
    except OSError as error:
        raise FileError(explain(target, error)) from error


def create_folder(folder: Path) -> None:
    """Create a folder and its parents, unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"cannot create the folder {folder}: {error.strerror or error}.") from error


def prepare_folder(folder: Path) -> None:
    """Create a folder and check, before hours of work, that files can be written into it."""
    create_folder(folder)
    write_bytes(folder / ".writable", b"")
    (folder / ".writable").unlink(missing_ok=True)


def without_repetition(paths: Sequence[Path], files: Callable[[Path], Iterator[Path]]) -> Iterator[Path]:
    """What ``files`` finds in or below each of the paths, one by one, in order, and none of it twice.

    Only where one of the paths lies in another one is remembered what was found, so that memory does not grow with it.
    """
    given = set(paths)
    repeats = len(given) < len(paths) or any(folder in given for path in given for folder in path.parents)
    seen: set[Path] = set()
    for path in paths:
        for file in files(path):
            if file not in seen:
                yield file
            if repeats:
                seen.add(file)


def files_at(path: Path, wanted: Callable[[str], bool], otherwise: str) -> Iterator[Path]:
    """A file itself, or the files with a wanted name in and below a folder; an error ``otherwise``."""
    empty = True
    for file in files_below(path, wanted) if path.is_dir() else [path]:
        empty = False
        yield file
    if empty:
        raise NotFoundError(otherwise)


def files_below(folder: Path, wanted: Callable[[str], bool]) -> Iterator[Path]:
    """The files with a wanted name in and below a folder, in the order of their paths.

    Only the names in single folders are in memory. What is hidden and folders that may not be read are left out, and
    links to folders are not followed.
    """
    folders: set[str] = set()
    names: list[str] = []
    with contextlib.suppress(PermissionError, FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.add(entry.name)
            elif wanted(entry.name) and (entry.is_file(follow_symlinks=False) or os.path.isfile(entry)):
                names.append(entry.name)
    for name in sorted([*names, *folders]):
        if name in folders:
            yield from files_below(folder / name, wanted)
        else:
            yield folder / name


def explain(path: Path, error: OSError) -> str:
    """A message that says why a file cannot be written, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        why = "the disk is full" if error.errno == errno.ENOSPC else "your share of the disk (quota) is used up"
        return f"cannot write {path}: {why}. Free some space; the old file is unchanged."
    if error.errno == errno.EFBIG:
        return f"cannot write {path}: it is larger than this system allows a file to be."
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"cannot write {path}: {path.parent} is read-only for this user. Choose another folder."
    return f"cannot write {path}: {error.strerror or error}. Choose another folder."


@contextlib.contextmanager
def lock_folder(folder: Path, *, wait: bool) -> Iterator[None]:
    """Keep other processes from using a folder, until the context or the process ends, however it ends.

    The lock file stays: if it were removed, two processes could hold it. On a file system without locks, nothing is
    locked.

    Args:
        folder: is created if it does not exist.
        wait: wait for another process to finish; otherwise raise a :class:`UsageError` that names it.
    """
    create_folder(folder)
    path = folder / LOCK
    lock = FileLock(path, timeout=-1 if wait else 0, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout as error:
        holder = ""
        with contextlib.suppress(OSError, UnicodeDecodeError):  # it may be removed in this moment
            holder = path.read_text().strip()
        raise UsageError(
            f"{holder or 'another process'} is using {folder}: wait for it, or choose another folder."
        ) from error
    except OSError as error:
        if error.errno not in CANNOT_LOCK:
            raise FileError(explain(path, error)) from error
        yield
        return
    try:
        with contextlib.suppress(OSError):  # a full disk is reported where it matters
            path.write_text(f"process {os.getpid()} on {socket.gethostname()}")
        yield
    finally:
        lock.release()


def _sync(folder: Path) -> None:
    """Make a new name survive a power cut, where the system allows it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
