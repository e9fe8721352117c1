"""What flows between the layers of an image network."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Capsules(NamedTuple):
    """Capsules on a grid: poses, with coordinates in the trailing axis, and activations: how far each is present."""

    poses: Float[Tensor, "batch capsules height width d"]
    activations: Float[Tensor, "batch capsules height width"]
