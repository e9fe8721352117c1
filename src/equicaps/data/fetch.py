"""Fetching data files: sources are tried in turn, and a file gets its name only when it is complete and verified."""

import contextlib
import importlib.util
import logging
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

from equicaps._files import create_folder, write_bytes
from equicaps.errors import DamagedFileError, FetchError, MissingPackageError

_log = logging.getLogger(__name__)
_CHUNK = 1 << 18
_TIMEOUT = 30.0  # seconds without an answer
_SCRATCH = ".fetching-"

Contents = Iterator[tuple[str, bytes]]
"""Verified files: paths below the data set's folder, and what they hold."""
Source = Callable[[Path], Contents]
"""Fetches files; may use the folder that it is given for whatever it needs on the way."""


def fetch(folder: Path, sources: Mapping[str, Source]) -> None:
    """Store the files of the first source that delivers all of its files. For one process at a time.

    Args:
        folder: where the files go.
        sources: by their names, in the order in which they are tried.

    Raises:
        FetchError: with what each source said.
    """
    if missing := [name for name in ("pooch", "rich") if importlib.util.find_spec(name) is None]:
        raise MissingPackageError(f"Fetching data needs {' and '.join(missing)}: pip install 'equicaps[data]'.")
    for leftover in folder.glob(f"{_SCRATCH}*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    reasons = []
    for name, source in sources.items():
        try:
            with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder) as scratch:
                for file, content in source(Path(scratch)):
                    create_folder((folder / file).parent)
                    write_bytes(folder / file, content)
        except (OSError, ValueError) as error:
            reasons.append(f"{name}: {error}")
            _log.info("could not fetch from %s: %s", name, error)
        else:
            return
    raise FetchError("; ".join(reasons))


def download(url: str, folder: Path, md5: str | None = None) -> Path:
    """Download one file into a folder; with an md5, only a file that has it is accepted."""
    import pooch
    from requests import RequestException

    pooch.get_logger().setLevel(logging.WARNING)  # it would print every step to stderr, beside the bar
    name, headers = url.rsplit("/", 1)[-1], {"User-Agent": "equicaps"}
    try:
        with progress(name) as bar:
            get = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, timeout=_TIMEOUT, headers=headers)
            return Path(pooch.retrieve(url, md5 and f"md5:{md5}", name, folder, downloader=get))
    except RequestException as error:
        if error.response is not None:  # pooch leaves the connection open
            error.response.close()
        reason: BaseException = error
        while reason.__context__ is not None:  # the outer ones repeat the address and add the names of classes
            reason = reason.__context__
        raise FetchError(str(reason)) from error


def from_zip(url: str, md5: str | None, files: Sequence[str], scratch: Path) -> Contents:
    """The files of a zip archive, each found by the last part of its path, in whatever folder of the archive it is."""
    archive = download(url, scratch, md5)
    for file in files:
        yield file, read_member(archive, Path(file).name)[1]


def read_member(archive: Path, *names: str) -> tuple[str, bytes]:
    """Name and content of the first file in a zip or tar archive that has one of these names, in whatever folder.

    Nothing is unpacked to the disk, so paths in the archive can do no harm. Members of a zip are checked by their CRC.
    """
    try:
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tarred:
                for item in tarred:
                    if (name := Path(item.name).name) in names and (file := tarred.extractfile(item)):
                        return name, file.read()
        else:
            with zipfile.ZipFile(archive) as zipped:
                for path in zipped.namelist():
                    if (name := Path(path).name) in names:
                        return name, zipped.read(path)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DamagedFileError(f"{archive.name} is truncated or corrupted: {error}.") from error
    raise FetchError(f"{archive.name} holds no {' or '.join(names)}.")


@contextlib.contextmanager
def progress(name: str) -> Iterator[SimpleNamespace]:
    """Log what is being fetched and show on a terminal how far it is, by a bar with what pooch uses of tqdm's."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    _log.info("fetching %s", name)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as display:
        task = display.add_task(name, total=None)
        bar = SimpleNamespace(total=0, reset=lambda: display.reset(task), close=display.stop)
        bar.update = lambda count: display.update(task, total=bar.total or None, advance=count)
        yield bar
