"""Which data sets there are, where they are found, and how to get them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from equicaps.data import affnist, galaxies, mnist, mnist_rot, modelnet10
from equicaps.data.dataset import Dataset
from equicaps.data.embedded import embedded_digits
from equicaps.data.locate import Collection, look
from equicaps.data.shapes import Shapes

Loaded = TypeVar("Loaded", Dataset, Shapes)


@dataclass(frozen=True)
class Entry(Generic[Loaded]):
    """A data set, of images or of shapes, that commands know by name.

    Attributes:
        name: as commands take it.
        contents: one line about what it holds.
        licence: as its authors state it.
        parts: the files of each split; none for a set inside the package.
        collection: where the files are found; None for a set inside the package.
        load: loads a split by name, and fetches it if it is missing.
    """

    name: str
    contents: str
    licence: str
    parts: dict[str, Sequence[str]]
    collection: Collection | None
    load: Callable[[Any], Loaded]

    def found(self, part: str) -> Path | None:
        """The folder that holds this split, or None if there is none; nothing is fetched."""
        if self.collection is None:
            return Path(__file__).parent / "files"
        files = look(self.collection, self.parts[part])
        return files[0].parent if files else None


CATALOGUE: dict[str, Entry[Dataset]] = {
    entry.name: entry
    for entry in (
        Entry("digits", "4,000 + 1,000 MNIST digits, in this package", "CC BY-SA 3.0",
              {"train": (), "test": ()}, None, embedded_digits),
        Entry("mnist", "60,000 + 10,000 digits, 28x28", "CC BY-SA 3.0", dict(mnist.FILES), mnist.COLLECTION,
              mnist.load_mnist),
        Entry("mnist_rot", "12,000 + 50,000 digits at any angle, 28x28", "not stated",
              {part: mnist_rot.files(part) for part in ("train", "test")}, mnist_rot.COLLECTION,
              mnist_rot.load_mnist_rot),
        Entry("affnist", "digits under small affine maps, 40x40", "not stated",
              {part: affnist.files(part) for part in ("train", "test")}, affnist.COLLECTION, affnist.load_affnist),
        Entry("galaxies", "1,758 + 200 + 200 radio galaxies of FIRST, 4 classes", "non-commercial: see docs/data.md",
              dict.fromkeys(galaxies.COUNTS, (galaxies.FILE,)), galaxies.COLLECTION, galaxies.load_galaxies),
    )
}  # fmt: skip
"""Every data set of images by its name."""

SHAPE_CATALOGUE: dict[str, Entry[Shapes]] = {
    "modelnet10": Entry(
        "modelnet10", "3,991 + 908 shapes of furniture, voxels", "academic research: see docs/data.md",
        dict.fromkeys(modelnet10.COUNTS, (modelnet10.FILE,)), modelnet10.COLLECTION, modelnet10.load_modelnet10
    )
}  # fmt: skip
"""Every data set of shapes by its name."""
