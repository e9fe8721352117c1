"""A network small enough to train in milliseconds, with everything that makes training hard to resume."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from equicaps.data import rotate
from equicaps.models import Block, GroupCapsNet, SteerableConfig, SteerableNet
from equicaps.training import Budget, Intervals, TrainConfig


class Digits(NamedTuple):
    name: str
    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]


def digits(count: int = 40) -> Digits:
    """Three classes of bars, noisy; not divisible by the batch, so that batches cross epochs."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % 3
    images = torch.rand(count, 1, 16, 16, generator=generator) * 0.2
    for kind, width in enumerate((2, 5, 9)):
        images[labels == kind, :, 3:13, 3 : 3 + width] += 0.7
    return Digits("bars", images, labels, ("thin", "broad", "square"))


def turned(images: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    degrees = torch.rand(len(images), generator=generator) * 360
    return rotate(images, degrees, 32), degrees


def network(seed: int = 0, dtype: torch.dtype = torch.float32) -> GroupCapsNet:
    blocks = (Block(3, 6, stride=2, padding=2), Block(4, 4, pool=True, padding=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GroupCapsNet(SteerableNet(SteerableConfig(num_classes=3, blocks=blocks))).to(dtype)


def config(steps: int = 12, **changes) -> TrainConfig:
    intervals = changes.pop("intervals", Intervals(log_steps=2, evaluations=3, checkpoint_steps=1))
    return TrainConfig(Budget(steps=steps), batch=changes.pop("batch", 8), intervals=intervals, **changes)


@pytest.fixture
def data() -> Digits:
    return digits()
