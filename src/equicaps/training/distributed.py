"""Several processes that train one network."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn


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
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)

    @torch.no_grad()
    def average(self, parameters: Iterable[nn.Parameter], figures: Sequence[float]) -> list[float]:
        """Average gradients in place, and some figures along with them: one message for all."""
        if self.size == 1:
            return list(figures)
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        shared = torch.cat([*(gradient.flatten() for gradient in gradients), gradients[0].new_tensor(figures)])
        dist.all_reduce(shared)
        shared /= self.size
        mean = shared[-len(figures) :].tolist()
        for gradient, part in zip(
            gradients, shared.split([g.numel() for g in gradients] + [len(figures)]), strict=False
        ):
            gradient.copy_(part.view_as(gradient))
        return mean

    def agree(self, value: float) -> float:
        """The smallest of all processes' values."""
        if self.size == 1:
            return value
        shared = torch.tensor(value, dtype=torch.float64 if self.device.type != "mps" else torch.float32)
        shared = shared.to(self.device)
        dist.all_reduce(shared, dist.ReduceOp.MIN)
        return shared.item()


def choose_device(name: str) -> torch.device:
    """The named device; ``auto`` is CUDA, else MPS, else the CPU."""
    if name != "auto":
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
