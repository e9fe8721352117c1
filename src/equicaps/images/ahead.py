"""Read images in threads while a network computes, in order and within a fixed amount of memory."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


def ahead(function: Callable[[S], T], items: Iterable[S], *, workers: int, limit: int) -> Iterator[T]:
    """Yield ``function(item)`` for each item, in order; threads compute up to ``limit`` results before they are needed.

    No more items are taken than that, so there may be any number of them.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="equicaps")
    waiting: deque[Future[T]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > limit:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


class Room:
    """Space for a number of things at once, which threads take and give back; something larger takes all of it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = size
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def taken(self, amount: int) -> Iterator[None]:
        """Wait until there is so much space, and keep it until the context ends."""
        amount = min(amount, self.size)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= amount)
            self._free -= amount
        try:
            yield
        finally:
            with self._changed:
                self._free += amount
                self._changed.notify_all()
