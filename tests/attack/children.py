"""Attempts in a process of their own, which may neither take forever nor all memory."""

import contextlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

GIGABYTE = 2**30
DONE = "\ndone"
"""The end of every report: an empty one is no good news."""


def outcome(
    attempt: Callable[[], str | None], report: Path, *, seconds: int = 20, memory: int = GIGABYTE
) -> str | None:
    """What an attempt returns in a forked process, or how that failed: with an error, by a signal, or too slowly.

    Args:
        attempt: returns None if the library survived, or what went wrong.
        report: a file for what the process has to say.
        seconds: the time that it may take.
        memory: how many bytes more than now it may ask for.
    """
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _limit_memory(memory)
        try:
            _attempt(attempt, report)
        finally:
            os._exit(0)
    ended = _wait(child, seconds)
    if ended is None:
        return f"still running after {seconds} seconds"
    if os.WIFSIGNALED(ended):
        return f"ended by signal {signal.Signals(os.WTERMSIG(ended)).name}"
    said = report.read_text() if report.exists() else ""
    return said.removesuffix(DONE) or None if said.endswith(DONE) else f"ended without a word: {said}"


def _attempt(attempt: Callable[[], str | None], report: Path) -> None:
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        try:
            found = attempt()
        except BaseException:
            found = traceback.format_exc(limit=-3)
    report.write_text((found or "") + DONE, errors="backslashreplace")


def _limit_memory(more: int) -> None:
    if sys.platform == "linux":
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))


def _wait(child: int, seconds: int) -> int | None:
    """The status with which a process ends; after so many seconds it is killed, and the status is None."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
