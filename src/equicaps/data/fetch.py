"""Downloading: resumable, verified before a file gets its name, never half a file under it."""

import contextlib
import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from equicaps._files import lock_folder
from equicaps.errors import DamagedFileError, FetchError

_log = logging.getLogger(__name__)
_CHUNK = 1 << 18
_TIMEOUT = 30.0  # seconds without an answer

Verify = Callable[[Path], None]
"""Raise DamagedFileError unless the file is what it should be."""


def download(urls: Sequence[str], target: Path, verify: Verify) -> None:
    """Fetch one file from the first mirror that has it, unless another process was first.

    What has arrived is kept as ``NAME.part`` when the connection breaks or the program is stopped, and continued the
    next time. The file gets its name in one step, after ``verify`` has passed it.

    Raises:
        FetchError: with what each mirror said.
    """
    with lock_folder(target.parent, wait=True):
        download_alone(urls, target, verify)


def download_alone(urls: Sequence[str], target: Path, verify: Verify) -> None:
    """:func:`download` for who has :func:`lock_folder` the folder already."""
    part = target.with_name(f"{target.name}.part")
    reasons = []
    if target.exists():
        return
    for url in urls:
        try:
            _get(url, part, verify)
        except (OSError, http.client.HTTPException, DamagedFileError) as error:
            reasons.append(f"{url}: {error}")
            _log.info("could not fetch %s: %s", url, error)
        else:
            part.replace(target)
            _log.info("fetched %s", target)
            return
    raise FetchError("; ".join(reasons))


def _get(url: str, part: Path, verify: Verify) -> None:
    resumed = part.exists() and part.stat().st_size > 0
    _receive(url, part)
    try:
        verify(part)
    except DamagedFileError:
        part.unlink()
        if not resumed:
            raise
        _log.info("what was left of an earlier download does not fit; starting again")
        _get(url, part, verify)


def _receive(url: str, part: Path) -> None:
    """Append to the part what the server has beyond it."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"User-Agent": "equicaps"} | ({"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            return  # nothing beyond it: all there already, or not the same file, which verification finds
        raise
    with response:
        if response.status != http.HTTPStatus.PARTIAL_CONTENT:
            have = 0  # the server sends everything
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
        with part.open("ab" if have else "wb") as file, _progress(part.stem, have, total) as advance:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                advance(len(chunk))
    got = part.stat().st_size
    if total is not None and got < total:
        raise FetchError(f"the connection ended after {got:,} of {total:,} bytes; the next attempt continues there")


@contextlib.contextmanager
def waiting(what: str) -> Iterator[None]:
    """Say what takes so long, where there is a terminal and ``rich``; a line in the log anyhow."""
    _log.info("%s", what)
    try:
        from rich.console import Console
    except ImportError:
        yield
        return
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _progress(name: str, have: int, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar where there is a terminal and ``rich``; a line in the log anyhow."""
    _log.info("fetching %s, %s bytes%s", name, f"{total:,}" if total else "unknown", f" from {have:,} on" * bool(have))
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield lambda count: None
        return
    console = Console(stderr=True)
    columns = (TextColumn(name), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=total, completed=have)
        yield lambda count: bar.advance(task, count)
