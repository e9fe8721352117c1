"""Huge, tiny and nearly tied numbers in the operations of every group."""

from collections.abc import Generator
from pathlib import Path
from random import Random

import torch
from oracles import ALL_GROUPS

from equicaps.groups import SO2, SO3, Group

SCALES = (1e-38, 1e-30, 1e-10, 1.0, 1e10, 1e30)


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Means and distances, their gradients, inverses and logarithms are finite in float32, whatever the scale."""
    for _ in range(count):
        group, scale = random.choice(ALL_GROUPS), random.choice(SCALES)
        generator = torch.Generator().manual_seed(random.randrange(2**31))
        elements = group.random(random.randint(1, 6), generator=generator).requires_grad_()
        weights = (torch.rand(len(elements), generator=generator) * scale).requires_grad_()
        yield _finite(group, elements, weights, scale)


def _finite(group: Group, elements: torch.Tensor, weights: torch.Tensor, scale: float) -> str | None:
    mean = group.mean(elements, weights)
    distance = group.distance(mean.expand_as(elements), elements)
    (mean.sum() + distance.sum()).backward()
    values = {"mean": mean, "distance": distance, "gradient": elements.grad, "gradient of weights": weights.grad,
              "inverse": group.inverse(mean)}  # fmt: skip
    wrong = [name for name, value in values.items() if value is None or not value.isfinite().all()]
    if isinstance(group, SO2 | SO3) and not wrong:
        length = mean.square().sum().item() / (1 if isinstance(group, SO2) else 3)
        wrong += [] if length < 1 + 1e-5 else ["length"]
    return f"{group!r}, weights of {scale:g}: {', '.join(wrong)}" if wrong else None
