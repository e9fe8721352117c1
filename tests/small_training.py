"""A network that trains in milliseconds, yet has everything that makes a training hard to resume."""

import torch

from equicaps.data import Dataset
from equicaps.images import Augmentation
from equicaps.models import Block, GroupCapsNet, SteerableConfig, SteerableNet
from equicaps.training import Budget, Intervals, TrainConfig


def digits(count: int = 40) -> Dataset:
    """Three classes of noisy bars; the batch does not divide their number, so that batches cross epochs."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.arange(count) % 3
    images = torch.rand(count, 1, 16, 16, generator=generator) * 0.2
    for kind, width in enumerate((2, 5, 9)):
        images[labels == kind, :, 3:13, 3 : 3 + width] += 0.7
    return Dataset("bars", images, labels, ("thin", "broad", "square"))


ROTATED = Augmentation(32, rotation=180.0)


def network(seed: int = 0, dtype: torch.dtype = torch.float32) -> GroupCapsNet:
    blocks = (Block(3, 6, stride=2, padding=2), Block(4, 4, pool=True, padding=0))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GroupCapsNet(SteerableNet(SteerableConfig(num_classes=3, blocks=blocks))).to(dtype)


def config(steps: int = 12, **changes) -> TrainConfig:
    intervals = changes.pop("intervals", Intervals(log_steps=2, evaluations=3, checkpoint_steps=1))
    return TrainConfig(Budget(steps=steps), batch=changes.pop("batch", 8), intervals=intervals, **changes)
