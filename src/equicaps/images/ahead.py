"""Read images in threads while a network computes, in order and within a fixed amount of memory."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")

PIXELS = 16_000_000
"""How many pixels are decoded at once, at up to 12 bytes each; a larger image is decoded alone."""


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
        self._alone = ThreadPoolExecutor(1)

    def run(self, amount: int, function: Callable[[], T]) -> T:
        """Call a function that needs so much space.

        What is larger than all of it is always done by the same thread, because every thread keeps some of the memory
        that it once used.
        """
        with self.taken(amount):
            return self._alone.submit(function).result() if amount > self.size else function()

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
