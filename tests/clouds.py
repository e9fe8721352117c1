"""Clouds of points rotated in space, with which the point operators are compared."""

import torch
from torch import Tensor

from equicaps.functional import PointPoses
from equicaps.groups import SO3


def cloud(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Points (*shape, 3) on a lopsided egg: no symmetry of any kind."""
    generator = torch.Generator().manual_seed(seed)
    x, y, z = torch.nn.functional.normalize(
        torch.randn(*shape, 3, generator=generator, dtype=torch.float64), dim=-1
    ).unbind(-1)
    return torch.stack((1.4 * x, 0.9 * y + 0.3 * x * x, 0.6 * z + 0.25 * x * y + 0.2 * z * z), dim=-1).to(dtype)


def rotation(dtype: torch.dtype, seed: int = 1) -> Tensor:
    """One rotation, by a large angle about no coordinate axis."""
    return SO3().random(generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def rotate(turn: Tensor, points: Tensor) -> Tensor:
    """Every point rotated, with the rounding errors of one product."""
    return (points.double() @ turn.double().unflatten(-1, (3, 3)).mT).to(points)


def rotate_capsules(turn: Tensor, capsules: PointPoses) -> PointPoses:
    """Every pose rotated: what is expected of a layer whose cloud is rotated."""
    return PointPoses(SO3().compose(turn, capsules.poses), capsules.activations)


def scattered_capsules(points: Tensor, capsules: int, spread: float = 0.4) -> PointPoses:
    """Poses around one common pose, so that no mean cancels, with activations that differ."""
    group, shape = SO3(), (*points.shape[:2], capsules)
    away = group.exp(spread * torch.randn(*shape, 3, dtype=points.dtype))
    poses = group.compose(group.random(dtype=points.dtype), away)
    return PointPoses(poses, torch.rand(shape, dtype=points.dtype) + 0.1)
