"""Images in a file, of which only those that are asked for are in memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from equicaps.images.resizing import as_floats


@dataclass(frozen=True, eq=False, repr=False)
class StoredImages:
    """Images of shape (n, channels, height, width) that become floats in [0, 1] when they are taken.

    ``images[3]``, ``images[:100]`` and ``images[[5, 2]]`` are tensors, and so is ``images[:]``, which holds them all;
    ``images.split(250)`` gives one batch after another. All processes that map the same file share its memory, and the
    system takes it back when it is short of it.

    Attributes:
        pixels: bytes, or integers of 16 bits, as they lie in the file.
        places: which of them are meant, in this order.
    """

    pixels: Shaped[np.ndarray, "_all channels height width"]
    places: Int[Tensor, " n"]

    @property
    def shape(self) -> torch.Size:
        """That of the tensor ``images[:]``."""
        return torch.Size((len(self.places), *self.pixels.shape[1:]))

    def __len__(self) -> int:
        return len(self.places)

    def __repr__(self) -> str:
        return f"StoredImages({' x '.join(map(str, self.shape))}, {self.pixels.dtype}; images[:] is a tensor)"

    def __getitem__(self, which: int | slice | Sequence[int] | Int[Tensor, " m"]) -> Float[Tensor, "..."]:
        return as_floats(torch.from_numpy(np.array(self.pixels[self.places[which].numpy()])))  # copies these alone

    def chosen(self, which: slice | Sequence[int] | Int[Tensor, " m"]) -> "StoredImages":
        """Some of the images, which stay where they are."""
        return replace(self, places=self.places[which])

    def split(self, size: int) -> Iterator[Float[Tensor, "_ channels height width"]]:
        """All images, at most ``size`` at a time."""
        return (self[start : start + size] for start in range(0, len(self), size))
