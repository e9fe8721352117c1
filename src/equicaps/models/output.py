"""The output of a network."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.groups import SO2


class CapsOutput(NamedTuple):
    """The class capsules of a batch: one score, agreement and pose for each class."""

    scores: Float[Tensor, "batch classes"]
    """Class scores before the softmax, from the convolutional part."""
    activations: Float[Tensor, "batch classes"]
    """The agreements of the class capsules, in [0, 1]."""
    poses: Float[Tensor, "batch classes d"]
    """The rotation of each class, which is zero where the pose is undefined: a unit vector (2 coordinates) for images,
    a 3x3 matrix, row by row (9), for shapes."""
    reconstruction: Float[Tensor, "batch channels height width"] | None = None
    """The decoded image, if the network has a decoder."""

    def map(self, function: Callable[[Tensor], Tensor]) -> "CapsOutput":
        """Apply one function to every tensor, for example to move them to a device or convert their dtype."""
        reconstruction = None if self.reconstruction is None else function(self.reconstruction)
        return CapsOutput(function(self.scores), function(self.activations), function(self.poses), reconstruction)

    @staticmethod
    def cat(outputs: "Sequence[CapsOutput]") -> "CapsOutput":
        """Join the class capsules of several batches, without reconstructions."""
        parts = zip(*(output[:3] for output in outputs), strict=True)
        return CapsOutput(*(torch.cat(part) for part in parts))


def identity_poses(images: Tensor, capsules: int, height: int, width: int) -> Float[Tensor, "b m h w 2"]:
    """The identity pose for every capsule of a grid and every image, which networks without poses use."""
    return SO2().identity(images.shape[0], capsules, height, width, dtype=images.dtype, device=images.device)
