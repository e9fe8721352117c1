"""The finished parts of a table, in a folder, from which work continues wherever it was killed."""

import contextlib
import itertools
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from equicaps._files import LOCK, rename, write_bytes, write_json, written
from equicaps.errors import DamagedFileError, UsageError
from equicaps.inference.batches import BATCH
from equicaps.inference.rows import Row, as_line, read_lines

PART_ROWS, PART_SECONDS = 8192, 10.0
"""A part is finished when it has so many rows, or has taken so long."""
MANIFEST, FILES = "manifest.json", "files.jsonl"

Settings = Mapping[str, str | bool]
"""All that the answers depend on, besides the files."""


class Parts:
    """A folder with the names of the files to read, a manifest with the settings, and the rows that are finished.

    Each of its files is written completely or not at all. Only one process may use it at a time.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done = 0
        """The number of rows in finished parts."""
        self._lines: list[bytes] = []
        self._since = 0.0

    def start(self, files: Iterable[str], settings: Settings, *, force: bool) -> int:
        """List the files to read, and start anew unless there are parts for the same files and settings.

        Returns:
            The number of files.
        """
        listed, manifest = self.folder / f"new-{FILES}", self.folder / MANIFEST
        total = 0
        try:
            with written(listed) as file:
                for name in files:
                    file.write(json.dumps(name).encode() + b"\n")
                    total += 1
            fresh = not (manifest.exists() and (self.folder / FILES).exists())
            differences = [] if fresh else self._differences(settings, listed)
            if differences and not force:
                raise UsageError(
                    f"{self.folder} holds parts of other answers: {'; '.join(differences)}. Run that command again to "
                    "continue it; to start anew, use --force or choose another name."
                )
            if fresh or differences:
                self.clear(keep=listed)
                rename(listed, self.folder / FILES)
                write_json(manifest, dict(settings))
        finally:
            listed.unlink(missing_ok=True)
        self.done = max((last for _, last in self._ranges()), default=0)
        self._since = time.monotonic()
        return total

    def remaining(self) -> Iterator[str]:
        """The files that are not in finished parts."""
        with (self.folder / FILES).open("rb") as file:
            yield from map(json.loads, itertools.islice(file, self.done, None))

    def add(self, row: Row) -> None:
        """Add the next row. Parts end where a batch ends, so that a run that is continued has the same batches."""
        self._lines.append(as_line(row))
        late = len(self._lines) >= PART_ROWS or time.monotonic() - self._since >= PART_SECONDS
        if late and len(self._lines) % BATCH == 0:
            self.finish()

    def finish(self) -> None:
        """Write the rows that were added since the last part."""
        if self._lines:
            first, self.done = self.done, self.done + len(self._lines)
            write_bytes(self._part(first, self.done), b"".join(self._lines))
        self._lines, self._since = [], time.monotonic()

    def rows(self, total: int) -> Iterator[Row]:
        """All rows, which must be this many."""
        if self.done != total:
            raise DamagedFileError(
                f"{self.folder} holds {self.done} answers, but there are {total} files to read: remove it."
            )
        for first, last in self._ranges():
            yield from read_lines(self._part(first, last))

    def clear(self, *, keep: Path | None = None) -> None:
        """Remove every file that a run writes into the folder; without the manifest, the others mean nothing."""
        for path in (self.folder / MANIFEST, *self.folder.glob("*.jsonl"), *self.folder.glob(".*.partial")):
            if path != keep:
                path.unlink(missing_ok=True)

    def remove_if_empty(self) -> None:
        """Remove the folder if nothing is left in it but the lock."""
        with contextlib.suppress(OSError):
            if [path.name for path in self.folder.iterdir()] == [LOCK]:
                (self.folder / LOCK).unlink()
                self.folder.rmdir()

    def _part(self, first: int, last: int) -> Path:
        return self.folder / f"{first:012}-{last:012}.jsonl"

    def _ranges(self) -> list[tuple[int, int]]:
        """Where each part begins and ends."""
        names = sorted(path.stem for path in self.folder.glob("[0-9]*-[0-9]*.jsonl"))
        ranges = [(int(first), int(last)) for first, last in (name.split("-") for name in names)]
        if any(last != first for (_, last), (first, _) in itertools.pairwise([(0, 0), *ranges])):
            raise DamagedFileError(f"{self.folder} lacks a part: remove it and start anew.")
        return ranges

    def _differences(self, settings: Settings, listed: Path) -> list[str]:
        """How the settings and the files differ from those of the parts, in words."""
        old: Settings = json.loads((self.folder / MANIFEST).read_bytes())
        names = [name for name in dict.fromkeys((*old, *settings)) if old.get(name) != settings.get(name)]
        found = [f"{name} {old.get(name)} there, {settings.get(name)} now" for name in names]
        with (self.folder / FILES).open("rb") as before, listed.open("rb") as after:
            for number, lines in enumerate(itertools.zip_longest(before, after, fillvalue=b'"none"'), 1):
                if lines[0] != lines[1]:
                    return [*found, "file {:,} {} there, {} now".format(number, *map(json.loads, lines))]
        return found
