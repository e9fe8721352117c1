"""Speed of a model in images per CPU-second: comparable between machines that also do something else."""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from equicaps.inference.export import open_session, to_onnx
from equicaps.models import GroupCapsNet


class Speed(NamedTuple):
    """One line of the table."""

    what: str
    batch: int
    images_per_cpu_second: float


def measure(
    network: GroupCapsNet, images: Tensor, *, seconds: float = 2.0, onnx: bool = True,
    watch: Callable[[str], None] | None = None,
) -> list[Speed]:  # fmt: skip
    """Training step, inference, and inference in onnxruntime, on one thread.

    Args:
        network: is left as it was.
        images: in its size; their number is the batch.
        seconds: CPU time for each line.
        onnx: whether to export and measure that, too.
        watch: is told what is being measured.
    """
    tell, batch = watch or (lambda what: None), len(images)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        tell("training step")
        found = [Speed("training step", batch, _speed(_training(network, images), batch, seconds))]
        with torch.inference_mode():
            for some in (images, images[:1]):
                tell("inference")
                rate = _speed(lambda some=some: network(some), len(some), seconds)  # type: ignore[misc] # bound at once
                found.append(Speed("inference, PyTorch", len(some), rate))
        if onnx:
            tell("export")
            session = open_session(to_onnx(network))
            for some in (images, images[:1]):
                tell("inference in onnxruntime")
                feed = {"images": some.numpy()}
                rate = _speed(lambda feed=feed: session.run(None, feed), len(some), seconds)  # type: ignore[misc] # bound at once
                found.append(Speed("inference, ONNX Runtime", len(some), rate))
    finally:
        torch.set_num_threads(threads)
    return found


def _training(network: GroupCapsNet, images: Tensor) -> Callable[[], None]:
    """Cross entropy, backward, AdamW, on a copy."""
    trained = deepcopy(network).train()
    optimizer = torch.optim.AdamW(trained.parameters(), lr=1e-4)
    labels = torch.arange(len(images)) % network.body.config.num_classes

    def step() -> None:
        loss = F.cross_entropy(trained(images).scores, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def _speed(step: Callable[[], object], images: int, seconds: float) -> float:
    for _ in range(2):
        step()
    started, steps = time.process_time(), 0
    while time.process_time() - started < seconds or not steps:
        step()
        steps += 1
    return steps * images / (time.process_time() - started)
