"""Windows of a grid and positions in them, aligned by the mean pose (Section 3, Equation 9)."""

import math

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from equicaps.groups import Group


def windows(planes: Shaped[Tensor, "*batch h w"], kernel_size: int, stride: int) -> Shaped[Tensor, "*batch y x k"]:
    """Every window of a grid, with its k = kernel_size² values in reading order."""
    return planes.unfold(-2, kernel_size, stride).unfold(-2, kernel_size, stride).flatten(-2)


def window_positions(
    kernel_size: int, *, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> Float[Tensor, "k 2"]:
    """The positions :math:`x_k` of a window in reading order: centred, unit spacing, x right, y up."""
    ticks = torch.arange(kernel_size, dtype=dtype or torch.get_default_dtype(), device=device) - (kernel_size - 1) / 2
    return torch.stack((ticks.repeat(kernel_size), -ticks.repeat_interleave(kernel_size)), dim=-1)


def mean_pose(group: Group, poses: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch d"]:
    r""":math:`\bar p = M(p_1, \dots, p_n, 1)`, the mean pose of a receptive field; undefined poses do not count."""
    return group.mean(poses, group.presence(poses))


def align(
    group: Group, mean: Float[Tensor, "*batch d"], positions: Float[Tensor, "k 2"]
) -> Float[Tensor, "*batch k 2"]:
    r""":math:`\bar p^{-1} x_k` for every position: the argument of the transformation generator in Equation 9.

    ``align(g ∘ p̄, g x) == align(p̄, x)``: what the generator sees does not change when the window is rotated
    together with its poses. Where the mean pose fades (poses that cancel), positions under SO(2) shrink smoothly to the
    centre, in the same way for every rotation.
    """
    return group.act(group.inverse(mean).unsqueeze(-2), positions)


def positions_of(kernel_size: int) -> list[tuple[float, float]]:
    """:func:`window_positions` as numbers."""
    ticks = [k - (kernel_size - 1) / 2 for k in range(kernel_size)]
    return [(x, -y) for y in ticks for x in ticks]


def quadruples(kernel_size: int) -> list[tuple[tuple[float, float], list[int]]]:
    """Positions at angles in [0, 90) degrees, each with the indices of its four rotations; the centre with its own."""
    index = {position: k for k, position in enumerate(positions_of(kernel_size))}
    centre = [((x, y), [k]) for (x, y), k in index.items() if x == y == 0]
    corner = [(x, y) for x, y in index if x > 0 and y >= 0]
    return centre + [((x, y), [index[x, y], index[-y, x], index[-x, -y], index[y, -x]]) for x, y in corner]


def spline_radius(kernel_size: int) -> float:
    """The distance of a window's corners from its centre, which the control points of a spline reach."""
    return max(1, kernel_size - 1) / math.sqrt(2)
