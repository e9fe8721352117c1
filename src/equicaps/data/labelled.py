"""What sets of images and sets of shapes have in common: their labels, and how parts of them are chosen."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from equicaps.errors import UsageError

FEWEST_TO_SHARE = 5
"""A class with fewer members needs all of them for training."""
LEFT_OUT = 1 / 20
"""If rounding shares down leaves out a smaller part of what is to be held back, it is not made up for.

So the sets with which published models were measured, ModelNet10 above all, keep what they have held back.
"""


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

    Every class gives its share, but never all of its members. Shares are rounded down, and if much is left out by that
    (:data:`LEFT_OUT`), the classes with the largest remainders give one member more, in a drawn order where they are
    equal. A class with fewer members than :data:`FEWEST_TO_SHARE` gives none more, and each of the others gives at
    least one if ``count`` is at least the number of classes.
    """
    generator = torch.Generator().manual_seed(0)
    held = torch.zeros(len(labels), dtype=torch.bool)
    shares = _shares(labels.bincount(minlength=classes).tolist(), count)
    for label, share in enumerate(shares):
        places = (labels == label).nonzero().flatten()
        held[places[torch.randperm(len(places), generator=generator)[:share]]] = True
    return (~held).nonzero().flatten(), held.nonzero().flatten()


def _shares(sizes: Sequence[int], count: int) -> list[int]:
    """How many members each class of these sizes gives, if about ``count`` are to be held back: see held_places."""
    total, shares = sum(sizes), []
    for size in sizes:
        share = count * size // total if total else 0
        if count >= len(sizes) and size >= FEWEST_TO_SHARE:
            share = max(share, 1)
        shares.append(min(share, max(size - 1, 0)))
    missing = count - sum(shares)
    if missing < LEFT_OUT * count:
        return shares
    remainders = [count * size - share * total for size, share in zip(sizes, shares, strict=True)]
    drawn = torch.randperm(len(sizes), generator=torch.Generator().manual_seed(0)).tolist()
    spared = [size if size >= FEWEST_TO_SHARE else 0 for size in sizes]
    able = [label for label in drawn if remainders[label] > 0 and shares[label] + 1 < spared[label]]
    for label in sorted(able, key=lambda label: -remainders[label])[:missing]:
        shares[label] += 1
    return shares
