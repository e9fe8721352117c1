"""What every loader and generator of three-dimensional shapes returns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps.data.labelled import check_labels, held_places, spread_places
from equicaps.data.surfaces import Surface, drawn, is_whole

POINTS = 1024
"""How many points of a shape are drawn, unless a training draws another number; the card of its model says how many."""
Places = slice | Sequence[int] | Int[Tensor, " m"] | Bool[Tensor, " n"]


def _numbers(count: int, which: Places) -> list[int]:
    """The chosen ones of so many, from a slice, their numbers, or a mask."""
    if isinstance(which, slice):
        return list(range(count))[which]
    chosen = torch.as_tensor(which).cpu()
    found: list[int] = torch.arange(count)[chosen if chosen.dtype == torch.bool else chosen.long()].tolist()
    return found


class Surfaces:
    """Surfaces in an order; ``surfaces[3]`` is one of them, ``surfaces[:100]`` and ``surfaces[[5, 2]]`` are several.

    Args:
        surfaces: of any kinds; they are not copied.
    """

    def __init__(self, surfaces: Iterable[Surface]) -> None:
        self._surfaces = tuple(surfaces)

    def __len__(self) -> int:
        return len(self._surfaces)

    def __iter__(self) -> Iterator[Surface]:
        return iter(self._surfaces)

    def __repr__(self) -> str:
        return f"Surfaces({len(self)})"

    @overload
    def __getitem__(self, which: int) -> Surface: ...
    @overload
    def __getitem__(self, which: Places) -> "Surfaces": ...
    def __getitem__(self, which: int | Places) -> "Surface | Surfaces":
        if isinstance(which, int):
            return self._surfaces[which]
        return Surfaces(self._surfaces[number] for number in _numbers(len(self), which))

    def draw(self, count: int, generator: torch.Generator) -> list[Float[Tensor, "_ 3"]]:
        """``count`` points of each surface, or all points of a cloud that has no more."""
        return [drawn(surface, count, generator) for surface in self._surfaces]

    def whole(self, count: int) -> Bool[Tensor, " n"]:
        """Which surfaces always give the same points to :meth:`draw`, because they have no others."""
        return torch.tensor([is_whole(surface, count) for surface in self._surfaces], dtype=torch.bool)

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "n {count} 3"]:
        """``count`` points of each surface, of a cloud with fewer with repetition; zeros of empty ones."""
        if not self._surfaces:
            return torch.zeros(0, count, 3)
        return torch.stack([surface.sample(count, generator) for surface in self._surfaces])


@dataclass(frozen=True, eq=False, repr=False)
class Shapes:
    """Surfaces with their classes, and a name under which results may be published.

    Trainings take a set of shapes in place of a :class:`equicaps.data.Dataset`; ``images``, ``angles``,
    ``known_angles``, ``different`` and :meth:`value_range` are there for that.

    Attributes:
        name: what the data are, with their split; the names of data made here contain the word *regenerated*.
        surfaces: what points are drawn from, in the coordinates of their files.
        labels: positions in ``classes``.
        classes: the names of the classes.
        note: what was done to the shapes on loading, if anything.
    """

    name: str
    surfaces: Surfaces
    labels: Int[Tensor, " n"]
    classes: tuple[str, ...]
    note: str = ""
    angles: ClassVar[None] = None
    """No rotation is known."""

    def __post_init__(self) -> None:
        check_labels(self.name, "shapes", len(self.surfaces), self.labels, self.classes)

    @property
    def images(self) -> Surfaces:
        """The surfaces, under the name that trainings use."""
        return self.surfaces

    @property
    def known_angles(self) -> Bool[Tensor, " n"]:
        """Which shapes have a known angle: none."""
        return torch.zeros(len(self), dtype=torch.bool)

    def value_range(self) -> tuple[float, float]:
        """That of pixels, which shapes do not have."""
        return 0.0, 1.0

    @property
    def different(self) -> int:
        """The number of shapes: none is repeated."""
        return len(self)

    def __len__(self) -> int:
        return len(self.surfaces)

    def __repr__(self) -> str:
        return f"Shapes({self.name!r}, {len(self)} shapes, {len(self.classes)} classes)"

    def sample(self, count: int, seed: int = 0) -> Float[Tensor, "n {count} 3"]:
        """``count`` points of each shape, the same ones for the same set and seed; zeros of empty shapes."""
        return self.surfaces.sample(count, torch.Generator().manual_seed(seed))

    def take(self, which: Places) -> "Shapes":
        """The chosen shapes, under the same name."""
        places = _numbers(len(self), which)
        return replace(self, surfaces=self.surfaces[places], labels=self.labels[places])

    def some(self, count: int | None) -> "Shapes":
        """At most ``count`` shapes, spread over the set and always the same ones; all of them for None."""
        if count is None or count >= len(self):
            return self
        if count < 1:
            raise ValueError(f"{self.name}: `count` must be at least 1, or None for all shapes, but is {count}.")
        return self.take(spread_places(len(self), count))

    def hold_back(self, count: int) -> tuple["Shapes", "Shapes"]:
        """The set without about ``count`` shapes, and those; each class gives its share, as for a ``Dataset``."""
        rest, held = held_places(self.labels, len(self.classes), count)
        return self.take(rest), self.take(held)

    def class_sizes(self) -> list[int]:
        """The number of shapes of each class."""
        return self.labels.bincount(minlength=len(self.classes)).tolist()
