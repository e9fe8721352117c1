"""Capsules as planes in memory, and the windows in which any of them is active.

Kernels read coordinates first and windows last: (coordinate, capsule, pixel of all images). :class:`Capsules` has the
batch first and the coordinates last, but nothing says how its memory is ordered. What :func:`on_grid` returns are
planes seen through other strides, and :func:`active_windows` reads such capsules without copying them.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from equicaps.functional.alignment import windows
from equicaps.functional.capsules import Capsules


class ActiveWindows(NamedTuple):
    """The windows in which any capsule is active, as planes: coordinates first, windows last."""

    poses: Float[Tensor, "2 c k windows"]
    activations: Float[Tensor, "c k windows"]
    places: Int[Tensor, " windows"]
    """The indices of these windows among those of the whole batch."""
    grid: tuple[int, int, int]
    """The sizes of the batch and of the grid of windows."""


def active_windows(capsules: Capsules, kernel_size: int, stride: int) -> ActiveWindows:
    """Gather poses and activations of every window in which a capsule is active, in one pass.

    Windows that are active at the same positions come one after the other, so that a kernel that handles several at
    once can skip the other positions.
    """
    poses, activations = capsules
    batch, _, height, width = activations.shape
    pixels = torch.arange(batch * height * width, device=poses.device).view(batch, height, width)
    seen = windows(pixels, kernel_size, stride)  # (b, y, x, k)
    busy = windows((activations != 0).any(1), kernel_size, stride)
    kinds = (busy.long() << torch.arange(busy.shape[-1], device=poses.device) % 62).sum(-1).flatten()
    order = torch.argsort(kinds, stable=True)
    places = order[busy.any(-1).flatten()[order]]
    index = seen.flatten(0, 2)[places].T.flatten()  # (k · windows)
    once = stride >= kernel_size
    gathered = _Gather.apply(poses, activations, index, once)  # type: ignore[no-untyped-call] # torch
    p, a = (plane.unflatten(-1, (kernel_size**2, -1)) for plane in gathered)
    return ActiveWindows(p, a, places, (batch, *busy.shape[1:3]))


def on_grid(
    poses: Float[Tensor, "2 m windows"], activations: Float[Tensor, "m windows"], active: ActiveWindows
) -> Capsules:
    """Capsules of the active windows in their places, undefined poses and zero activations everywhere else."""
    return Capsules(*_Scatter.apply(poses, activations, active.places, active.grid))  # type: ignore[no-untyped-call] # torch


def _flat(poses: Tensor, activations: Tensor) -> tuple[Tensor, Tensor]:
    """(b, c, h, w, 2) and (b, c, h, w) as (2, c, pixels) and (c, pixels); free if they are planes in memory."""
    return poses.permute(4, 1, 0, 2, 3).flatten(2), activations.transpose(0, 1).flatten(1)


def _seen_as_capsules(poses: Tensor, activations: Tensor, grid: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """The inverse of :func:`_flat`, without copying."""
    return poses.unflatten(-1, grid).permute(2, 1, 3, 4, 0), activations.unflatten(-1, grid).transpose(0, 1)


def _take(poses: Tensor, activations: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Columns of planes. Torch takes them sixteen times faster from a matrix than from a tensor of three dimensions."""
    if _is_everything(index, activations.shape[-1]):
        return poses, activations
    p, a = (plane.flatten(0, -2).index_select(-1, index) for plane in (poses, activations))
    return p.unflatten(0, poses.shape[:-1]), a


def _is_everything(index: Tensor, size: int) -> bool:
    """Whether these are all columns in their order: on dense images nothing has to move."""
    return len(index) == size and not index.is_meta and torch.equal(index, torch.arange(size, device=index.device))


def _put(poses: Tensor, activations: Tensor, index: Tensor, size: int, *, once: bool) -> tuple[Tensor, Tensor]:
    """The transpose of :func:`_take`; ``once`` says that no column has two sources."""
    if _is_everything(index, size):
        return poses, activations
    planes = []
    for plane in (poses, activations):
        zeros = plane.new_zeros(math.prod(plane.shape[:-1]), size)
        put = zeros.index_copy_ if once else zeros.index_add_
        planes.append(put(-1, index, plane.flatten(0, -2)).unflatten(0, plane.shape[:-1]))
    return planes[0], planes[1]


class _Gather(torch.autograd.Function):
    """Pixels of poses and activations; ``once`` says that none is taken twice."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        poses, activations, index, ctx.once = arguments
        ctx.save_for_backward(index)
        batch, _, height, width = activations.shape
        ctx.grid = (batch, height, width)
        return _take(*_flat(poses, activations), index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (index,) = ctx.saved_tensors
        everywhere = _put(gradients[0], gradients[1], index, math.prod(ctx.grid), once=ctx.once)
        return *_seen_as_capsules(*everywhere, ctx.grid), None, None


class _Scatter(torch.autograd.Function):
    """Windows to their places, zeros elsewhere."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        poses, activations, places, grid = arguments
        ctx.save_for_backward(places)
        return _seen_as_capsules(*_put(poses, activations, places, math.prod(grid), once=True), grid)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (places,) = ctx.saved_tensors
        return *_take(*_flat(gradients[0], gradients[1]), places), None, None
