"""Several processes that train one network: on one machine, or on many through ``torchrun``."""

import contextlib
import datetime
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import PrefixStore, Store, TCPStore, rendezvous  # type: ignore[attr-defined] # documented

from equicaps.errors import TrainingError, UsageError

PATIENCE = datetime.timedelta(hours=2)
"""How long processes wait for one that evaluates or writes."""
MEETING = datetime.timedelta(minutes=10)
"""How long they wait at the start until all are there."""
_HOST = "127.0.0.1"


@dataclass(frozen=True)
class World:
    """The processes that share a training, as one of them sees it."""

    device: torch.device
    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
        """Whether this process writes files and reports."""
        return self.rank == 0

    @torch.no_grad()
    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Give every process the first one's values."""
        if self.size > 1:
            with explained():
                for tensor in tensors:
                    dist.broadcast(tensor.detach(), 0)

    @torch.no_grad()
    def average(self, network: nn.Module, figures: Sequence[float]) -> list[float]:
        """Average gradients and running statistics in place, and some figures along with them: one message for all."""
        if self.size == 1:
            return list(figures)
        tensors = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
        tensors += [buffer for buffer in network.buffers() if buffer.is_floating_point()]
        sizes = [*(tensor.numel() for tensor in tensors), len(figures)]
        shared = torch.cat([*(tensor.flatten() for tensor in tensors), tensors[0].new_tensor(figures)])
        with explained():
            dist.all_reduce(shared)
        *parts, mean = (shared / self.size).split(sizes)
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))
        return mean.tolist()

    def share(self, content: bytes) -> bytes:
        """The first process's bytes, for all."""
        if self.size == 1:
            return content
        length = torch.tensor([len(content)], device=self.device)
        self.broadcast([length])
        shared = torch.zeros(int(length), dtype=torch.uint8, device=self.device)
        if not len(shared):
            return b""
        if self.leads:
            shared.copy_(torch.frombuffer(bytearray(content), dtype=torch.uint8))
        self.broadcast([shared])
        return shared.cpu().numpy().tobytes()


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The named device; ``auto`` is CUDA (one for each process of a machine), else MPS, else the CPU."""
    if name != "auto":
        try:
            torch.zeros(1, device=name)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(f"device {name!r} is not there: {str(error).splitlines()[0]}") from error
        return torch.device(name, local_rank) if name == "cuda" else torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


@contextlib.contextmanager
def join(device: str, rank: int, size: int, local_rank: int, meet: Callable[[], Store]) -> Iterator[World]:
    """Become one of ``size`` processes; ``meet`` waits for the others where all of them find each other."""
    chosen = choose_device(device, local_rank)
    if chosen.type == "mps":
        raise UsageError("several processes share no MPS device: use one process, or the CPU (device 'cpu').")
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    with explained():
        store = meet()
        dist.init_process_group(
            "nccl" if chosen.type == "cuda" else "gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE
        )
        store.set_timeout(PATIENCE)
    try:
        yield World(chosen, rank, size)
    finally:
        dist.destroy_process_group()


@contextlib.contextmanager
def open_world(
    processes: int, device: str, worker: Callable[..., object], arguments: tuple[Any, ...] = ()
) -> Iterator[World]:
    """The processes of a training, this one among them.

    Under ``torchrun``: those that it started, and ``processes`` must be 1. Otherwise this process leads and starts
    ``processes - 1`` more, each of which calls ``worker(world, *arguments)``; ``worker`` and its arguments must be
    picklable. The others ignore Ctrl-C: they stop when the first process says so.
    """
    if "TORCHELASTIC_RUN_ID" in os.environ or {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        if processes > 1:
            raise UsageError("torchrun already starts the processes: leave `processes` at 1 under torchrun.")
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

        def meet() -> Store:
            return PrefixStore("equicaps", next(rendezvous("env://", rank, size, timeout=MEETING))[0])

        with join(device, rank, size, int(os.environ.get("LOCAL_RANK", 0)), meet) as world:
            yield world
    elif processes == 1:
        yield World(choose_device(device))
    else:
        with _local_world(processes, device, worker, arguments) as world:
            yield world


@contextlib.contextmanager
def _local_world(
    processes: int, device: str, worker: Callable[..., object], arguments: tuple[Any, ...]
) -> Iterator[World]:
    store = TCPStore(_HOST, 0, processes, is_master=True, timeout=MEETING, wait_for_workers=False)
    context = torch.multiprocessing.get_context("spawn")
    threads = torch.get_num_threads()
    others = [
        context.Process(
            target=_serve, args=(rank, processes, device, store.port, threads, worker, arguments), daemon=True
        )
        for rank in range(1, processes)
    ]
    try:
        for process in others:
            process.start()
        with join(device, 0, processes, 0, lambda: _all_there(store, others)) as world:
            yield world
            for process in others:
                process.join(timeout=60)
    finally:
        for process in others:
            if process.pid is not None:
                process.join(timeout=5)  # losing the first process ends them
                process.kill()
                process.join()


def _all_there(store: Store, others: Sequence[BaseProcess]) -> Store:
    """Wait until every helper has arrived, but not for one that has ended."""
    deadline = time.monotonic() + MEETING.total_seconds()
    while not store.check([_arrival(rank) for rank in range(1, len(others) + 1)]):
        if ended := [process.exitcode for process in others if process.exitcode is not None]:
            raise TrainingError(
                f"a helper process ended at its start (exit code {ended[0]}); it says why above. Helpers import the "
                'program that started them: a script must start the training below `if __name__ == "__main__":`, and '
                "must be a file. Or use one process."
            )
        if time.monotonic() > deadline:
            raise TrainingError(f"the helper processes were not ready after {MEETING}: start fewer, or one process.")
        time.sleep(0.02)
    return store


def _arrival(rank: int) -> str:
    return f"equicaps/{rank} is there"


def _serve(
    rank: int, size: int, device: str, port: int, threads: int, worker: Callable[..., object], arguments: Any
) -> None:
    def meet() -> Store:
        store = TCPStore(_HOST, port, size, is_master=False, timeout=MEETING, wait_for_workers=False)
        store.set(_arrival(rank), "")
        return store

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(threads)
    # When the first process fails, it tells why; its helpers have nothing to add.
    with contextlib.suppress(TrainingError), join(device, rank, size, rank, meet) as world:
        worker(world, *arguments)


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """A lost process is reported as such."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error) or "onnection" in str(error):
            raise TrainingError(
                "lost another process of this training: it was killed, failed or cannot be reached. "
                f"The last checkpoint can be resumed. ({str(error).splitlines()[0]})"
            ) from error
        raise
