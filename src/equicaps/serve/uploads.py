"""Files that a client has sent."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fastapi import HTTPException

from equicaps.errors import MissingPackageError
from equicaps.serve.batches import Batches

T = TypeVar("T")


class Uploads:
    """Reads files one at a time, images and shapes alike, to bound memory.

    Args:
        waiting: the most files that wait.
    """

    def __init__(self, waiting: int) -> None:
        self._queue = Batches[Callable[[], Any], Any](_read, batch=1, waiting=waiting)

    async def read(self, reader: Callable[[], T]) -> T:
        """What the reader of a file returns; what is wrong with the file becomes a refusal."""
        try:
            found: T = await self._queue.ask(reader)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        return found


def _read(readers: Sequence[Callable[[], Any]]) -> list[Any]:
    found = []
    for reader in readers:
        try:
            found.append(reader())
        except (ValueError, MissingPackageError) as error:
            found.append(ValueError(str(error)))  # without the traceback, which would keep the file in memory
    return found
