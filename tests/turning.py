"""Grids and poses turned by quarters: what every image operator is compared with."""

import torch
from torch import Tensor

from equicaps.functional import Capsules
from equicaps.groups import GL, SE2, SO2, Group


def quarter_turn(group: Group, quarters: int, dtype: torch.dtype) -> Tensor:
    """The element that turns the plane counter-clockwise by 90 degrees, several times; without rounding."""
    cos, sin = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)][quarters % 4]
    coordinates = {SO2: [cos, sin], SE2: [cos, sin, 0.0, 0.0], GL: [cos, -sin, sin, cos]}[type(group)]
    return torch.tensor(coordinates, dtype=dtype)


def turn_grid(maps: Tensor, quarters: int) -> Tensor:
    """Maps (batch, channels, height, width, ...) turned counter-clockwise, row 0 on top."""
    return torch.rot90(maps, quarters, (2, 3))


def turn_poses(group: Group, poses: Tensor, quarters: int) -> Tensor:
    """Poses on a grid: the grid turns, and every pose with it."""
    return group.compose(quarter_turn(group, quarters, poses.dtype), turn_grid(poses, quarters))


def turn_capsules(group: Group, capsules: Capsules, quarters: int) -> Capsules:
    """What an image network must return, and gets, when its image is turned."""
    return Capsules(turn_poses(group, capsules.poses, quarters), turn_grid(capsules.activations, quarters))


def scattered(group: Group, *shape: int, dtype: torch.dtype, spread: float = 0.4) -> Tensor:
    """Poses (*shape, d) around one common pose, so that no mean cancels."""
    return group.compose(
        group.random(dtype=dtype), group.exp(spread * torch.randn(*shape, group.algebra_dim, dtype=dtype))
    )
