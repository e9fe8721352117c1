"""One command in several processes on this machine, started by ``torchrun``; the first one speaks for all of them."""

import contextlib
import logging
import os
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import typer
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.run import parse_args, run

from equicaps.cli.reporting import FAILED
from equicaps.errors import TrainingError, UsageError
from equicaps.training.distributed import PATIENCE, STORE, TORCHRUN

LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
REPORT_SECONDS = 10
"""How long the other processes leave it to the first one to report a failure."""


def is_first() -> bool:
    """Whether this process reports: it is alone, or the first of those that ``torchrun`` started."""
    return os.environ.get("RANK", "0") == "0"


def launch(processes: int) -> int:
    """Run this command again in several processes; returns the exit code of the first one, which has reported.

    On Ctrl-C torchrun passes the signal on, once, and waits for the processes to save and end; a second Ctrl-C ends
    them. The processes find each other through files in a folder that only this user can read, and talk on the loopback
    interface: no other machine can reach them.
    """
    if os.environ.keys() >= TORCHRUN:
        raise UsageError("torchrun already starts the processes: leave out --processes.")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(int(PATIENCE.total_seconds())))
    logging.disable(logging.ERROR)  # this process only launches: what torchrun logs is reported below, in one line
    try:
        with tempfile.TemporaryDirectory(prefix="equicaps-") as private, _only_on_this_machine(Path(private) / "store"):
            options = ["--rdzv-backend=c10d", f"--rdzv-endpoint={private}/rendezvous", "--rdzv-conf=store_type=file",
                       f"--rdzv-id={secrets.token_hex()}", "--local-addr=127.0.0.1",
                       f"--nproc-per-node={processes}", f"--log-dir={os.devnull}"]  # fmt: skip
            # Of an option that is given twice, the last one counts.
            run(parse_args([*options, "--module", "equicaps.cli.main", *sys.argv[1:], "--processes=1"]))
    except SignalException as error:
        if isinstance(error.__context__, SignalException):
            raise KeyboardInterrupt from error
        return FAILED
    except ChildFailedError as error:
        first = error.failures.get(0)
        if first is not None and first.exitcode > 0:
            return first.exitcode
        rank, failure = error.get_first_failure()
        how = failure.signal_name() if failure.exitcode < 0 else f"exit code {failure.exitcode}"
        raise TrainingError(
            f"process {rank + 1} of {processes} ended unexpectedly ({how}): continue from the last checkpoint with "
            "--resume."
        ) from error
    return 0


@contextlib.contextmanager
def _only_on_this_machine(store: Path) -> Iterator[None]:
    """Let processes that are started now find each other through a file, and talk on the loopback interface."""
    before = os.environ.copy()
    os.environ |= {STORE: str(store), "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    for backend in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{backend}_SOCKET_IFNAME", LOOPBACK)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@contextlib.contextmanager
def first_process_reports() -> Iterator[None]:
    """Let the first process say why the command failed.

    torchrun ends all processes as soon as one has failed, which is often not the first, although they all fail for
    the same reason.
    """
    if not is_first():
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends it without a word until the training handles Ctrl-C
    try:
        yield
    except typer.Exit as end:
        if end.exit_code and os.environ.keys() >= TORCHRUN:
            if is_first():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            else:
                time.sleep(REPORT_SECONDS)
        raise
