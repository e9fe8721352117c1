"""What flows between the layers of a network for points."""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor


class CapsuleCloud(NamedTuple):
    """Capsules at points of space: one pose, a flattened rotation matrix, and one activation of each."""

    positions: Float[Tensor, "batch n 3"]
    weights: Float[Tensor, "batch n"]
    """How far each point counts: 0 for padding."""
    poses: Float[Tensor, "batch n capsules 9"]
    activations: Float[Tensor, "batch n capsules"]

    def take(self, indices: Int[Tensor, "batch m"], weights: Float[Tensor, "batch m"]) -> "CapsuleCloud":
        """The capsules at some of the points, with new weights."""
        positions, poses, activations = (
            gather_points(values, indices) for values in (self.positions, self.poses, self.activations)
        )
        return CapsuleCloud(positions, weights, poses, activations)


def gather_points(values: Float[Tensor, "batch n *d"], indices: Int[Tensor, "batch m"]) -> Float[Tensor, "batch m *d"]:
    """What the chosen points have; unlike ``take_along_dim``, exporters follow it for any batch size."""
    places = indices.reshape(*indices.shape, *(1 for _ in values.shape[2:]))
    return values.gather(1, places.expand(-1, -1, *values.shape[2:]))
