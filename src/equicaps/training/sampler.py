"""The images of each step, as a pure function of seed and step.

Every process draws the same global batch and takes its part, so the images do not depend on the number of processes,
and the sampler has no state but the number of the step.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import Dataset, Shapes

Augment = Callable[[Any, torch.Generator], tuple[Tensor, ...]]
"""Maps images, or surfaces, and a generator to views of them and the degrees by which each was rotated; on the CPU.

For clouds of points, the weights of their points follow.
"""

_ORDER, _AUGMENTATION = 0, 1


class Batch(NamedTuple):
    """Augmented views; with two views of each image, the halves of the batch show the same images."""

    views: Float[Tensor, "batch channels height width"] | Float[Tensor, "batch n 3"]
    labels: Int[Tensor, " batch"]
    degrees: Float[Tensor, " batch"]
    angles: Float[Tensor, " batch"] | None = None
    """The true angle of each view, that of its image plus its own rotation; NaN where unknown, None if all are."""
    weights: Float[Tensor, "batch n"] | None = None
    """Those of the points of clouds, 0 for padding; None for images."""

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """What the network takes."""
        return (self.views,) if self.weights is None else (self.views, self.weights)

    @property
    def known(self) -> float:
        """The share of views with a known angle."""
        return 0.0 if self.angles is None else (~self.angles.isnan()).double().mean().item()

    def part(self, rank: int, size: int, views: int) -> "Batch":
        """The part of one of ``size`` processes, with all views of its images."""

        def own(entry: Tensor) -> Tensor:
            return torch.cat([half.chunk(size)[rank] for half in entry.chunk(views)])

        return Batch(*(None if entry is None else own(entry) for entry in self))  # type: ignore[arg-type] # only where it was None


class Sampler:
    """An endless stream of batches: one permutation of the images after another.

    Args:
        data: the training set.
        augmentation: makes random views of its images.
        images: the number of different images in each batch.
        views: the number of views of each image.
        seed: of order and augmentation.
    """

    def __init__(self, data: Dataset | Shapes, augmentation: Augment, *, images: int, views: int, seed: int) -> None:
        self.data, self.augmentation = data, augmentation
        self.images, self.views, self.seed = images, views, seed
        self._permutation = lru_cache(maxsize=2)(self._draw_permutation)

    def batch(self, step: int) -> Batch:
        """The whole batch of step number ``step``, from 0."""
        chosen = self.indices(step).repeat(self.views)
        views, degrees, *weights = self.augmentation(
            self.data.images[chosen], generator(self.seed, _AUGMENTATION, step)
        )
        angles = None if self.data.angles is None else self.data.angles[chosen].to(degrees) + degrees
        return Batch(views, self.data.labels[chosen], degrees, angles, *weights)

    def indices(self, step: int) -> Int[Tensor, " images"]:
        """The images of step number ``step``."""
        count, start = len(self.data.images), step * self.images
        position, taken = start, []
        while position < start + self.images:
            epoch, offset = divmod(position, count)
            taken.append(self._permutation(epoch)[offset : offset + start + self.images - position])
            position += len(taken[-1])
        return torch.cat(taken)

    def _draw_permutation(self, epoch: int) -> Int[Tensor, " n"]:
        return torch.randperm(len(self.data.images), generator=generator(self.seed, _ORDER, epoch))


def generator(*key: int) -> torch.Generator:
    """A random generator for a key of numbers, independent of those of all other keys."""
    state = np.random.SeedSequence([part % 2**64 for part in key]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))
