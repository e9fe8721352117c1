"""What every loader and generator returns."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps.data.labelled import check_labels, held_places, spread_places
from equicaps.errors import UsageError
from equicaps.images.background import Background
from equicaps.images.stored import StoredImages

DIGITS = tuple("0123456789")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Images in [0, 1] with their classes, and a name under which results may be published.

    Attributes:
        name: what the data are, with their split; the names of data made here contain the word *regenerated*.
        images: all of one size; those of a folder stay in a file, see :class:`StoredImages`.
        labels: positions in ``classes``.
        classes: the names of the classes.
        note: what was done to the images on loading, if anything.
        background: that of the images as they were given, before padding; None if it is neither or unknown.
        angles: how each image is rotated from the upright position of its class, in degrees, counter-clockwise; NaN
            where that is unknown, None if it is for all images.
        origins: if images are repeated, which one of those that differ each is, see :meth:`balanced`; None if none is.
    """

    name: str
    images: Float[Tensor, "n channels height width"] | StoredImages
    labels: Int[Tensor, " n"]
    classes: tuple[str, ...]
    note: str = ""
    background: Background | None = None
    angles: Float[Tensor, " n"] | None = None
    origins: Int[Tensor, " n"] | None = None

    def __post_init__(self) -> None:
        check_labels(self.name, "images", len(self.images), self.labels, self.classes)
        if self.angles is not None:
            self._check_angles(self.angles)
        if isinstance(self.images, Tensor) and not all(math.isfinite(value) for value in self.value_range()):
            wrong = (~self.images.isfinite()).flatten(1).any(1).nonzero().flatten().tolist()
            raise UsageError(
                f"{self.name}: pixels must be finite, but {len(wrong)} of {len(self)} images contain NaN or infinity, "
                f"the first at position {wrong[0]}: repair or remove them."
            )

    def _check_angles(self, angles: Tensor) -> None:
        if len(angles) != len(self.images):
            raise UsageError(f"{self.name}: {len(self.images)} images, but {len(angles)} angles.")
        if angles.isinf().any():
            place = int(angles.isinf().nonzero()[0])
            raise UsageError(
                f"{self.name}: angles must be finite, or NaN where they are unknown, but the one at position {place} "
                f"is {angles[place]:g}."
            )

    def value_range(self) -> tuple[float, float]:
        """The smallest and the largest value of all pixels; zeros if there are none; 0 and 1 of stored images."""
        if isinstance(self.images, StoredImages):
            return 0.0, 1.0
        if not self.images.numel():
            return 0.0, 0.0
        low, high = self.images.aminmax()  # NaN if there is one; fifty times faster than isfinite
        return float(low), float(high)

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.images.shape))
        repeated = f", {self.different} of them different" if self.different < len(self) else ""
        return f"Dataset({self.name!r}, {shape}{repeated}, {len(self.classes)} classes)"

    @property
    def different(self) -> int:
        """The number of images, each of those that :meth:`balanced` repeats counted once."""
        return len(self) if self.origins is None else len(self.origins.unique())

    def once(self) -> "Dataset":
        """The different images, each of those that :meth:`balanced` repeats once, in the order that they had before."""
        if self.origins is None:
            return self
        _, first = np.unique(self.origins.numpy(force=True), return_index=True)
        return self.take(torch.from_numpy(first))

    def take(self, which: slice | Sequence[int] | Int[Tensor, " m"]) -> "Dataset":
        """The chosen images, under the same name."""
        images = self.images.chosen(which) if isinstance(self.images, StoredImages) else self.images[which]
        angles = None if self.angles is None else self.angles[which]
        origins = None if self.origins is None else self.origins[which]
        return replace(self, images=images, labels=self.labels[which], angles=angles, origins=origins)

    @property
    def known_angles(self) -> Bool[Tensor, " n"]:
        """Which images have a known angle."""
        return torch.zeros(len(self), dtype=torch.bool) if self.angles is None else ~self.angles.isnan()

    def some(self, count: int | None) -> "Dataset":
        """At most ``count`` images, spread over the set and always the same ones; all of them for None.

        They show all classes, whether the set is sorted by class or its classes alternate: see :func:`spread_places`.
        """
        if count is None or count >= len(self):
            return self
        if count < 1:
            raise ValueError(f"{self.name}: `count` must be at least 1, or None for all images, but is {count}.")
        return self.take(spread_places(len(self), count))

    def some_of_each(self, count: int) -> "Dataset":
        """At most ``count`` images of each class, spread over them and always the same ones."""
        places = [(self.labels == label).nonzero().flatten() for label in range(len(self.classes))]
        return self.take(torch.cat([own[:: max(1, -(-len(own) // count))] for own in places]))

    def hold_back(self, count: int) -> tuple["Dataset", "Dataset"]:
        """The set without about ``count`` images, and those, always the same ones.

        Every class gives its share, but never all of its images: see :func:`equicaps.data.labelled.held_places`.
        """
        rest, held = held_places(self.labels, len(self.classes), count)
        return self.take(rest), self.take(held)

    def class_sizes(self) -> list[int]:
        """The number of images of each class."""
        return self.labels.bincount(minlength=len(self.classes)).tolist()

    def balanced(self, power: float = 1.0) -> "Dataset":
        """The same images with rarer ones repeated until every class is as frequent as the most frequent one.

        With a smaller ``power``, a class of n images gets only n (m / n)^power, where m is the number of the most
        frequent class; for 1/2 that is the geometric mean of both. The name of the result says so, and its
        :attr:`different` is the number of images without repetition.
        """
        sizes, most = self.class_sizes(), max(self.class_sizes())
        chosen = []
        for label, size in enumerate(sizes):
            found = (self.labels == label).nonzero().flatten()
            wanted = round(size * (most / max(1, size)) ** power)
            chosen.append(found.repeat(-(-wanted // max(1, size)))[:wanted])
        how = "balanced" if power == 1 else "evened out"
        places = torch.cat(chosen)
        origins = places if self.origins is None else self.origins[places]
        return replace(self.take(places), name=f"{self.name}, classes {how} by repetition", origins=origins)
