"""The paper's baseline for poses: no network, the mean of the image's gradients (Section 6.2, Table 1b)."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Dataset
from equicaps.images import rotate
from equicaps.metrics import pose_errors
from equicaps.nn import ImagePoses

SIZE = 32


def naive_poses(images: Float[Tensor, "batch 1 size size"], *, hierarchical: bool = True) -> Float[Tensor, "batch 2"]:
    """Sobel poses averaged in 2x2 blocks until one is left, each mean renormalised; or all of them at once.

    Renormalised plainly, as the authors do: where poses cancel, rounding noise becomes a direction. All local poses
    count alike.

    Args:
        images: their side a power of 2.
        hierarchical: the paper's baseline; otherwise one mean over the image, which turns out to be the better one.
    """
    size = images.shape[-1]
    if size & (size - 1):
        raise ValueError(f"naive_poses: blocks of 2x2 need a side that is a power of 2, but it is {size}.")
    poses = ImagePoses("sobel")(images).poses.squeeze(1)
    if not hierarchical:
        return F.normalize(poses.sum((1, 2)), dim=-1)
    while poses.shape[1] > 1:
        blocks = poses.unflatten(2, (-1, 2)).unflatten(1, (-1, 2))
        poses = F.normalize(blocks.sum((2, 4)), dim=-1)
    return poses.flatten(1)


def naive_errors(data: Dataset, *, hierarchical: bool = True, seed: int = 0) -> Float[Tensor, " n"]:
    """Degrees, for every image turned by the same seeded angles as in :func:`equicaps.metrics.evaluate`."""
    degrees = torch.rand(len(data), generator=torch.Generator().manual_seed(seed)) * 360
    errors = []
    for images, angle in zip(data.images.split(1000), degrees.split(1000), strict=True):
        upright, turned = (
            naive_poses(rotate(images, by, SIZE), hierarchical=hierarchical) for by in (torch.zeros_like(angle), angle)
        )
        errors.append(pose_errors(upright, turned, angle))
    return torch.cat(errors)
