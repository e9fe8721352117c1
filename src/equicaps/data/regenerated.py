"""Sets that are not always available, made from MNIST by the same recipe: not the originals, and never named so."""

from typing import Literal

import torch
from torch import Tensor

from equicaps.data.dataset import Dataset
from equicaps.errors import UsageError
from equicaps.images.augmentation import Augmentation
from equicaps.images.rotation import rotate

Split = Literal["train", "valid", "test"]

AFFINE = Augmentation(40, rotation=20.0, shear=0.2, scale=(0.8, 1.2), placement="ink")
"""As in Tieleman's affNIST: small affine transformations, and any translation that keeps the digit inside 40x40."""

_SPLITS: tuple[Split, ...] = ("train", "valid", "test")
_AT_ONCE = 1000  # images, to bound memory


def regenerate_mnist_rot(
    split: Split,
    mnist_train: Dataset,
    mnist_test: Dataset,
    seed: int = 0,
    counts: tuple[int, int, int] = (10_000, 2_000, 50_000),
) -> Dataset:
    """A set like Larochelle's MNIST-rot: uniform angles, bicubic, clipped to [0, 1], 28x28.

    Like the original, it draws from all 70,000 digits; here no digit is in two splits. A network trained on it has
    therefore seen digits of MNIST's test set: test it only on the test split of this set.

    Args:
        split: which of the three.
        mnist_train: MNIST's training set.
        mnist_test: MNIST's test set.
        seed: determines the choice of digits and their angles.
        counts: the number of images in each split.
    """
    available, needed = len(mnist_train) + len(mnist_test), sum(counts)
    if available < needed:
        raise UsageError(
            f"MNIST-rot (regenerated): {needed} different digits are needed, but {available} were given; "
            "pass all of MNIST or smaller counts."
        )
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(available, generator=generator)[:needed]
    degrees = torch.rand(needed, generator=generator) * 360
    part = _SPLITS.index(split)
    chosen, angles = order.split(list(counts))[part], degrees.split(list(counts))[part]
    rotated = [
        rotate(_pick(mnist_train.images[:], mnist_test.images[:], which), angle, interpolation="bicubic")
        for which, angle in zip(chosen.split(_AT_ONCE), angles.split(_AT_ONCE), strict=True)
    ]
    labels = _pick(mnist_train.labels, mnist_test.labels, chosen)
    name = f"MNIST-rot (regenerated, seed {seed}, {split})"
    return Dataset(name, torch.cat(rotated), labels, mnist_train.classes, background=mnist_train.background)


def _pick(first: Tensor, second: Tensor, which: Tensor) -> Tensor:
    """``torch.cat((first, second))[which]`` without copying everything."""
    picked = first.new_empty(len(which), *first.shape[1:])
    inside = which < len(first)
    picked[inside], picked[~inside] = first[which[inside]], second[which[~inside] - len(first)]
    return picked


def regenerate_affnist(
    split: Split, mnist_train: Dataset, mnist_test: Dataset, seed: int = 0, copies: int = 1
) -> Dataset:
    """A set like Tieleman's affNIST: 40x40, rotated by up to 20°, sheared, scaled and placed at random.

    As in the original, test images come from MNIST's test set, validation images from the last sixth of its
    training set (10,000 digits) and training images from the rest.

    Args:
        split: which of the three.
        mnist_train: MNIST's training set.
        mnist_test: MNIST's test set.
        seed: determines the random transformations.
        copies: the number of views of each digit; the original has 32.
    """
    boundary = len(mnist_train) * 5 // 6
    source = {
        "train": lambda: mnist_train.take(slice(None, boundary)),
        "valid": lambda: mnist_train.take(slice(boundary, None)),
        "test": lambda: mnist_test,
    }[split]()
    generator = torch.Generator().manual_seed(seed * len(_SPLITS) + _SPLITS.index(split))
    views = [AFFINE(x, generator).images for _ in range(copies) for x in source.images.split(_AT_ONCE)]
    name = f"affNIST (regenerated, seed {seed}, {split}{f', {copies} copies' if copies > 1 else ''})"
    return Dataset(name, torch.cat(views), source.labels.repeat(copies), source.classes, background=source.background)
