"""What a network answers."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from equicaps.groups import SO2


class CapsOutput(NamedTuple):
    """One capsule for each class."""

    scores: Float[Tensor, "batch classes"]
    """Class scores before the softmax, from the convolutional part."""
    activations: Float[Tensor, "batch classes"]
    """Agreements of the class capsules, in [0, 1]."""
    poses: Float[Tensor, "batch classes 2"]
    """How each class is turned: unit vectors, zero where undefined."""
    reconstruction: Float[Tensor, "batch channels height width"] | None = None
    """The decoded image, if the network has a decoder."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "CapsOutput":
        """Every part changed alike: moved to a device, converted to a dtype."""
        reconstruction = None if self.reconstruction is None else function(self.reconstruction)
        return CapsOutput(function(self.scores), function(self.activations), function(self.poses), reconstruction)


def identity_poses(images: Tensor, capsules: int, height: int, width: int) -> Float[Tensor, "b m h w 2"]:
    """The identity for every capsule of a grid, one for each of the images: what a network without poses uses."""
    return SO2().identity(images.shape[0], capsules, height, width, dtype=images.dtype, device=images.device)
