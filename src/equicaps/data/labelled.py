"""What sets of images and sets of shapes have in common: their labels, and how parts of them are chosen."""

import torch
from jaxtyping import Int
from torch import Tensor

from equicaps.errors import UsageError

FEWEST_TO_SHARE = 5
"""A class with fewer members needs all of them for training."""


def check_labels(name: str, kind: str, count: int, labels: Tensor, classes: tuple[str, ...]) -> None:
    """Raise unless each of so many images or shapes has a label, and each label a class.

    Args:
        name: of the set, for messages.
        kind: what it consists of, in the plural.
        count: of its members.
        labels: positions in ``classes``.
        classes: their names.
    """
    if count != len(labels):
        raise UsageError(f"{name}: {count} {kind}, but {len(labels)} labels.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(classes):
        raise UsageError(
            f"{name}: labels must be 0 to {len(classes) - 1} (there are {len(classes)} classes), "
            f"but range from {int(labels.min())} to {int(labels.max())}."
        )


def spread_places(total: int, count: int) -> Int[Tensor, " {count}"]:
    """``count`` different places out of ``total``, in order, spread over all and always the same ones.

    One is taken from each of ``count`` stretches of equal length, so that a set that is sorted by class shows all of
    them. Its place within the stretch is drawn (seeded), so that a set whose classes alternate does, too.
    """
    bounds = torch.arange(count + 1) * total // count
    drawn = torch.rand(count, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return bounds[:-1] + (drawn * bounds.diff()).long()


def held_places(labels: Int[Tensor, " n"], classes: int, count: int) -> tuple[Int[Tensor, " m"], Int[Tensor, " k"]]:
    """The places that stay, and about ``count`` that are held back, always the same ones; both in order.

    Every class gives its share, rounded down; if ``count`` is at least the number of classes, each gives at least one
    member, except those with fewer than :data:`FEWEST_TO_SHARE`.
    """
    generator = torch.Generator().manual_seed(0)
    held = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(classes):
        places = (labels == label).nonzero().flatten()
        share = count * len(places) // max(1, len(labels))
        if count >= classes and len(places) >= FEWEST_TO_SHARE:
            share = max(share, 1)
        held[places[torch.randperm(len(places), generator=generator)[:share]]] = True
    return (~held).nonzero().flatten(), held.nonzero().flatten()
