"""Stopping a training: the first Ctrl-C lets the current step finish, a second one takes effect immediately."""

import signal
import threading
from types import FrameType
from typing import Any


class StopRequest:
    """While active, the first SIGINT or SIGTERM only sets :attr:`asked`. Works in the main thread only."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self.__exit__()
