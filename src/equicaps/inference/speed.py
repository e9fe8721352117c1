"""The speed of a network in images per CPU-second, which other work on the same machine affects little."""

import time
from collections.abc import Callable
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from equicaps.inference.export import open_session, to_onnx
from equicaps.inference.model import eval_mode
from equicaps.models import GroupCapsNet


class Speed(NamedTuple):
    """The speed of one task at one batch size."""

    what: str
    batch: int
    images_per_cpu_second: float


def measure(
    network: GroupCapsNet, images: Tensor, *, seconds: float = 2.0, onnx: bool = True,
    watch: Callable[[str], None] | None = None,
) -> list[Speed]:  # fmt: skip
    """Measure a training step, inference, and inference in onnxruntime, on one thread.

    Args:
        network: the network to measure; it stays unchanged.
        images: images in its format; their number is the batch size.
        seconds: the CPU time for each measurement.
        onnx: whether to export the network and measure inference in onnxruntime as well.
        watch: is called with the name of each measurement before it starts.
    """
    announce, batch = watch or (lambda what: None), len(images)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        announce("training step")
        found = [Speed("training step", batch, _speed(_training(network, images), batch, seconds))]
        with eval_mode(network), torch.inference_mode():
            for some in (images, images[:1]):
                announce("inference")
                rate = _speed(lambda some=some: network(some), len(some), seconds)  # type: ignore[misc] # bound at once
                found.append(Speed("inference, PyTorch", len(some), rate))
        if onnx:
            announce("export")
            session = open_session(to_onnx(network))
            for some in (images, images[:1]):
                announce("inference in onnxruntime")
                feed = {"images": some.numpy()}
                rate = _speed(lambda feed=feed: session.run(None, feed), len(some), seconds)  # type: ignore[misc] # bound at once
                found.append(Speed("inference, ONNX Runtime", len(some), rate))
    finally:
        torch.set_num_threads(threads)
    return found


def _training(network: GroupCapsNet, images: Tensor) -> Callable[[], None]:
    """One step of a training with cross entropy and AdamW, on a copy of the network."""
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
