"""One training at a time in a folder."""

import contextlib
import os
import socket
from io import TextIOWrapper
from pathlib import Path

from equicaps.training.errors import CheckpointError, MisuseError
from equicaps.training.files import explain

LOCK = ".lock"


class FolderLock:
    """Holds a folder until :meth:`release`, or until the process ends, however it ends.

    Without effect where the system (Windows) or the file system (some network drives) has no ``flock``. The file stays:
    removing it would let two processes hold it.

    Raises:
        MisuseError: naming the process that holds the folder.
    """

    def __init__(self, folder: Path) -> None:
        self._file: TextIOWrapper | None = None
        try:
            import fcntl
        except ImportError:
            return
        path = folder / LOCK
        try:
            self._file = path.open("a+")
        except OSError as error:
            raise CheckpointError(explain(path, error)) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self.release()
            raise MisuseError(f"{holder} is training in {folder}: wait for it, or choose another folder.") from error
        except OSError:
            self.release()
            return
        with contextlib.suppress(OSError):  # a full disk is noticed where it matters
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
            self._file.flush()

    def release(self) -> None:
        """Let others have it."""
        if self._file:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None
