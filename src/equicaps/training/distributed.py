"""Several processes that train one network; ``torchrun`` starts them, on one machine or on many."""

import atexit
import contextlib
import datetime
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from equicaps.errors import TrainingError, UsageError

PATIENCE = datetime.timedelta(hours=2)
"""How long processes wait for the first one, which evaluates and writes files."""
TORCHRUN = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
"""Environment variables that tell a process about the others."""
STORE = "EQUICAPS_STORE"
"""The environment variable with the file through which processes on one machine find each other, if it is set."""


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
        """Average gradients and running statistics in place, and some figures with them, in a single message."""
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
        """The first process's bytes, in every process."""
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

    def wait_for_first(self) -> None:
        """Wait until the first process gets here, too."""
        self.share(b"")


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The named device; ``auto`` is CUDA (one device for each process of a machine), else MPS, else the CPU."""
    if name != "auto":
        try:
            torch.zeros(1, device=name)
        except (RuntimeError, AssertionError) as error:
            raise UsageError(
                f"there is no device {name!r} here ({str(error).splitlines()[0]}): choose auto or cpu."
            ) from error
        return torch.device(name, local_rank) if name == "cuda" else torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda", local_rank % torch.cuda.device_count())
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def join_world(device: str) -> World:
    """Join the processes that ``torchrun`` started; without ``torchrun``, this process is alone.

    A process group that the calling program has initialised is used. Otherwise one is initialised and kept until the
    program ends, because torch cannot reliably initialise a second one with the same addresses.
    """
    if not dist.is_initialized() and not os.environ.keys() >= TORCHRUN:
        return World(choose_device(device))
    chosen = choose_device(device, int(os.environ.get("LOCAL_RANK", 0)))
    if chosen.type == "mps":
        raise UsageError("several processes cannot share an MPS device: use one process, or the CPU (device 'cpu').")
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    if not dist.is_initialized():
        with explained():
            backend = "nccl" if chosen.type == "cuda" else "gloo"
            if path := os.environ.get(STORE):
                rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
                store = dist.FileStore(path, size)  # type: ignore[attr-defined] # torch exports it at run time
                dist.init_process_group(backend, timeout=PATIENCE, store=store, rank=rank, world_size=size)
            else:
                dist.init_process_group(backend, timeout=PATIENCE)
        atexit.register(_leave_world)
    return World(chosen, dist.get_rank(), dist.get_world_size())


def _leave_world() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Report a lost process as such."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error) or "onnection" in str(error):
            raise TrainingError(
                "lost another process of this training: it was killed, has failed or cannot be reached. "
                f"The last checkpoint can be resumed. ({str(error).splitlines()[0].partition('. ')[0]})"
            ) from error
        raise
