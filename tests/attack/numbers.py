"""Huge, tiny and nearly tied numbers in the operations of every group."""

import math
from collections.abc import Generator
from pathlib import Path
from random import Random

import torch
from oracles import ALL_GROUPS

from equicaps.groups import SO2, SO3, Group

SCALES = (1e-38, 1e-30, 1e-10, 1.0, 1e10, 1e30)


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Means, distances and logarithms, their gradients and inverses are finite in float32, whatever the scale.

    On SO(2) and SO(3) a mean is a rotation times a factor of at most 1, also of votes that nearly tie.
    """
    for _ in range(count):
        group, scale = random.choice(ALL_GROUPS), random.choice(SCALES)
        generator = torch.Generator().manual_seed(random.randrange(2**31))
        elements = group.random(random.randint(1, 6), generator=generator)
        weights = torch.rand(len(elements), generator=generator) * scale
        if isinstance(group, SO2 | SO3) and random.random() < 0.5:
            elements, weights = _nearly_tied(random, group, generator)
        yield _finite(group, elements.clone().requires_grad_(), weights.clone().requires_grad_(), scale)


def _nearly_tied(random: Random, group: SO2 | SO3, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Two votes about half a turn apart, with about the same weight."""
    angle = math.pi + random.choice((0.0, 1e-7, 1e-4, 1e-2, 0.1)) * random.uniform(-1, 1)
    algebra = torch.zeros(group.algebra_dim)
    algebra[-1] = angle
    first = group.random(generator=generator)
    votes = torch.stack([first, group.compose(first, group.exp(algebra))])
    return votes, torch.tensor([1.0, 1.0 + random.choice((0.0, 1e-7, 1e-3, 0.02, 0.1)) * random.uniform(-1, 1)])


def _finite(group: Group, elements: torch.Tensor, weights: torch.Tensor, scale: float) -> str | None:
    mean = group.mean(elements, weights)
    distance = group.distance(mean.expand_as(elements), elements)
    logarithm = group.log(elements)
    (mean.sum() + distance.sum() + logarithm.sum()).backward()
    values = {"mean": mean, "distance": distance, "logarithm": logarithm, "gradient": elements.grad,
              "gradient of weights": weights.grad, "inverse": group.inverse(mean)}  # fmt: skip
    wrong = [name for name, value in values.items() if value is None or not value.isfinite().all()]
    if isinstance(group, SO2 | SO3) and not wrong and not _is_faded_rotation(group, mean.detach()):
        wrong.append("no rotation")
    return f"{group!r}, weights of {scale:g}: {', '.join(wrong)}" if wrong else None


def _is_faded_rotation(group: SO2 | SO3, mean: torch.Tensor) -> bool:
    """Whether it is a rotation times a factor from 0 to 1."""
    if isinstance(group, SO2):
        return bool(mean.norm() < 1 + 1e-5)
    matrix = mean.unflatten(-1, (3, 3)) if mean.shape[-1] == 9 else mean
    gram = matrix @ matrix.mT
    factor = gram.diagonal().mean()
    return bool((gram - factor * torch.eye(3)).abs().max() < 1e-5 and factor < 1 + 1e-5)
