"""Official zip archives: fetched, checked and unpacked."""

import hashlib
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from equicaps._files import lock_folder, write_bytes
from equicaps.data.fetch import download_alone
from equicaps.data.registry import read_member
from equicaps.errors import DamagedFileError, FetchError


def fetch_from_zip(url: str, md5: str | None, folder: Path, files: Sequence[str]) -> None:
    """Fetch the archive into the folder and unpack the named files there; the archive itself is not kept.

    Several processes may ask at once: one fetches and unpacks, the others wait for it.

    Args:
        url: of the archive.
        md5: of the archive; where none is known, every member's own checksum in the archive is checked.
        folder: gets the files.
        files: paths below the folder; found by their last part anywhere in the archive.
    """
    archive = folder / url.rsplit("/", 1)[-1]
    with lock_folder(folder, wait=True):
        if all((folder / file).is_file() for file in files):  # another process was first
            return
        download_alone([url], archive, _verifier(md5))
        for file in files:
            content = read_member(archive, Path(file).name)
            if content is None:
                raise FetchError(f"no {Path(file).name} in {url}")
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            write_bytes(folder / file, content)
        archive.unlink(missing_ok=True)  # where nothing can be locked, another process may have been faster


def _verifier(md5: str | None) -> Callable[[Path], None]:
    def verify(path: Path) -> None:
        if md5 is not None:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
            if found != md5:
                raise DamagedFileError(f"{path} is truncated or corrupted: its md5 is {found}, not {md5}")
            return
        try:
            with zipfile.ZipFile(path) as zipped:
                broken = zipped.testzip()
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise DamagedFileError(f"{path} is truncated or not a zip archive: {error}") from error
        if broken:
            raise DamagedFileError(f"{path} is corrupted: the checksum of {broken} is wrong")

    return verify
