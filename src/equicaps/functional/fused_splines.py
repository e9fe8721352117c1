"""Spline convolution of degree 1 in one fused kernel: four control points for each rotated position, not all of them.

The loops are in ``fused_splines.c``.
"""

import ctypes
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from equicaps.functional.alignment import quadruples, spline_radius
from equicaps.functional.compiled import address, library

MOST_QUADRUPLES = 16
"""What the kernel is written for: windows of up to 8x8 positions, which are 16 quadruples."""

FEW_CHANNELS, TABLE = 4, 32
"""Up to so many channels, the forward pass runs over windows and looks control points up in tables of this size."""


class _Window(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("channels", "outputs", "windows", "size", "quadruples", "centre")),
        ("slope", ctypes.c_float), ("x", ctypes.c_float * MOST_QUADRUPLES), ("y", ctypes.c_float * MOST_QUADRUPLES),
        ("offset", (ctypes.c_int64 * 4) * MOST_QUADRUPLES),
    ]  # fmt: skip


def fused_splines_fit(features: Tensor, control_points: Tensor, degree: int, kernel_size: int) -> bool:
    """Whether :func:`fused_spline_convolution` serves this case, and a compiler has made it."""
    size = control_points.shape[-1]
    written_for = degree == 1 and size % 2 == 1 and size > 1 and 1 < kernel_size <= 8
    placed = features.device.type == "cpu" and features.dtype == torch.float32
    return bool(written_for and placed and library("fused_splines") is not None)


def fused_spline_convolution(
    features: Float[Tensor, "b c h w"], poses: Float[Tensor, "b m y x 2"], control_points: Float[Tensor, "m c s s"],
    *, kernel_size: int, stride: int, active: Bool[Tensor, "b y x"] | None = None,
) -> Float[Tensor, "b m y x"]:  # fmt: skip
    """:func:`equicaps.functional.spline_convolution` where :func:`fused_splines_fit`; equal up to rounding (a test).

    Quarter turns give the same bits. Windows that are not ``active`` are skipped.
    """
    (batch, _, height, width), (_, outputs, y, x, _) = features.shape, poses.shape
    everywhere, places = True, torch.arange(batch * y * x, device=features.device)
    if active is not None and not active.all():
        everywhere, places = False, active.flatten().nonzero().squeeze(1)
    image, rest = places.div(y * x, rounding_mode="floor"), places % (y * x)
    first = (image * height + rest.div(x, rounding_mode="floor") * stride) * width + rest % x * stride
    planes = poses.permute(4, 1, 0, 2, 3).flatten(2)
    if not everywhere:  # torch takes columns from a matrix much faster than from a tensor of three dimensions
        planes = planes.flatten(0, 1).index_select(1, places).unflatten(0, (2, outputs))
    layer = _geometry(kernel_size, width, control_points.shape[-1])
    found: Tensor = _Convolution.apply(features, planes, control_points, first, layer)  # type: ignore[no-untyped-call] # torch
    if not everywhere:
        found = found.new_zeros(outputs, batch * y * x).index_copy(1, places, found)
    return found.view(outputs, batch, y, x).transpose(0, 1)


class _Convolution(torch.autograd.Function):
    """From features (b, c, h, w) and poses (2, m, windows) to (m, windows)."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        features, poses, control_points, first, layer = arguments
        kernel = library("fused_splines")
        assert kernel is not None
        lanes = kernel.lanes()
        rows = _channels_last(features, lanes)
        weight = _padded(control_points.permute(0, 2, 3, 1), lanes)
        poses = poses.contiguous()
        outputs, windows = poses.shape[1:]
        layer.channels, layer.outputs, layer.windows = rows.shape[-1], outputs, windows
        derivatives = bool(ctx.needs_input_grad[1])
        out = rows.new_empty(3 if derivatives else 1, outputs, windows)
        scratch = rows.new_empty(2 * lanes * (4 * layer.quadruples + 1) * layer.channels)
        run, given = kernel.convolve, (rows, first, weight, poses)
        if features.shape[1] <= FEW_CHANNELS and control_points[0, 0].numel() <= TABLE:
            run, given = kernel.convolve_few, (_channels_last(features, 1), first, _tables(control_points), poses)
            layer.channels = features.shape[1]
        run(ctypes.byref(layer), *map(address, given), derivatives, address(scratch), address(out))
        layer.channels = rows.shape[-1]
        ctx.save_for_backward(rows, weight, poses, first, out)
        ctx.layer, ctx.scratch, ctx.shapes = layer, scratch, (features.shape, control_points.shape)
        return out[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, poses, first, out = ctx.saved_tensors
        kernel = library("fused_splines")
        assert kernel is not None
        gradient = gradient.contiguous()
        by_weight = torch.zeros_like(weight)
        by_rows = torch.zeros_like(rows) if ctx.needs_input_grad[0] else None  # images need none
        kernel.convolve_backward(
            ctypes.byref(ctx.layer),
            *map(address, (rows, first, weight, poses, gradient, ctx.scratch, by_weight)),
            None if by_rows is None else address(by_rows),
        )
        (batch, channels, height, width), (outputs, _, size, _) = ctx.shapes
        by_features = (
            None
            if by_rows is None
            else by_rows.view(batch, height, width, rows.shape[-1])[..., :channels].permute(0, 3, 1, 2)
        )
        by_points = by_weight.view(outputs, size, size, rows.shape[-1])[..., :channels].permute(0, 3, 1, 2)
        return by_features, out[1:] * gradient if len(out) == 3 else None, by_points, None, None


def _channels_last(features: Tensor, lanes: int) -> Tensor:
    return _padded(features.detach().permute(0, 2, 3, 1), lanes).flatten(0, 2)


def _padded(values: Tensor, lanes: int) -> Tensor:
    """Contiguous, with zeros after the last channel up to a whole number of vectors."""
    return F.pad(values.detach(), (0, -values.shape[-1] % lanes)).contiguous()


def _tables(control_points: Tensor) -> Tensor:
    """The control points of each pair of channels, (m, c, TABLE)."""
    flat = control_points.detach().flatten(2)
    return F.pad(flat, (0, TABLE - flat.shape[-1])).contiguous()


def _geometry(kernel_size: int, width: int, size: int) -> _Window:
    """The window on a grid of this width; sizes of the layer are still missing."""
    layer = _Window(size=size, centre=-1, slope=(size - 1) / 2 / spline_radius(kernel_size))
    for (x, y), members in quadruples(kernel_size):
        offsets = [k // kernel_size * width + k % kernel_size for k in members]
        if len(members) == 1:
            layer.centre = offsets[0]
            continue
        number = layer.quadruples
        layer.x[number], layer.y[number], layer.offset[number][:] = x, y, offsets
        layer.quadruples += 1
    return layer
