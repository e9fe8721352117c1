"""What flows between the layers of an image network."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Capsules(NamedTuple):
    """Capsules on a grid: their poses, coordinates in the trailing axis, and how strongly they are present."""

    poses: Float[Tensor, "batch capsules height width d"]
    activations: Float[Tensor, "batch capsules height width"]
