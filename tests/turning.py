"""Grids and poses rotated by quarter turns, with which the image operators are compared."""

import torch
from torch import Tensor

from equicaps.functional import Capsules
from equicaps.groups import GL, SE2, SO2, Group


def quarter_turn(group: Group, quarters: int, dtype: torch.dtype) -> Tensor:
    """The element that rotates the plane counter-clockwise by a number of quarter turns, without rounding."""
    cos, sin = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][quarters % 4]
    coordinates = {SO2: [cos, sin], SE2: [cos, sin, 0.0, 0.0], GL: [cos, -sin, sin, cos]}[type(group)]
    return torch.tensor(coordinates, dtype=dtype)


def turn_grid(maps: Tensor, quarters: int) -> Tensor:
    """Rotate maps (batch, channels, height, width, ...) counter-clockwise; row 0 is at the top."""
    return torch.rot90(maps, quarters, (2, 3))


def turn_poses(group: Group, poses: Tensor, quarters: int) -> Tensor:
    """Rotate a grid of poses, and every pose with it."""
    return group.compose(quarter_turn(group, quarters, poses.dtype), turn_grid(poses, quarters))


def turn_capsules(group: Group, capsules: Capsules, quarters: int) -> Capsules:
    """Rotate a grid of capsules: the input, and the expected output, of a layer whose image is rotated."""
    return Capsules(turn_poses(group, capsules.poses, quarters), turn_grid(capsules.activations, quarters))


def scattered(group: Group, *shape: int, dtype: torch.dtype, spread: float = 0.4) -> Tensor:
    """Poses (*shape, d) scattered around one common pose, so that no mean cancels."""
    return group.compose(
        group.random(dtype=dtype), group.exp(spread * torch.randn(*shape, group.algebra_dim, dtype=dtype))
    )
