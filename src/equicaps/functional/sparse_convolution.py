r"""Sparse group convolution: the window is rotated by the capsule's pose before the kernel is applied (Section 4).

.. math:: \mathrm{out}_j(x) = \sum_u \sum_c f_c(x + u)\, ψ_{jc}(p_j(x)^{-1} u)

Theorem 3: when features, grid and poses are rotated together, the output only moves with the grid. This is exact up to
rounding for quarter turns, which map the grid onto itself; the kernel is continuous and exact at any angle. An
undefined pose (zero) sees every position at the kernel's centre (splines) or drops the angular part of the kernel
(harmonics). Neither depends on a rotation, so the theorem holds there, too. Theorem 4: a shift of the features shifts
the output, which is equivariance in the dense factor.
"""

import functools
import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_alike
from equicaps.functional.alignment import positions_of, quadruples, spline_radius, windows
from equicaps.functional.fused_splines import fused_spline_convolution, fused_splines_fit
from equicaps.functional.spline import spline_basis
from equicaps.numerics import full_precision, weighted_mean


@full_precision
def spline_convolution(
    features: Float[Tensor, "b c h w"],
    poses: Float[Tensor, "b m y x 2"],
    control_points: Float[Tensor, "m c s s"],
    *,
    degree: int,
    kernel_size: int,
    stride: int,
    active: Bool[Tensor, "b y x"] | None = None,
) -> Float[Tensor, "b m y x"]:
    r"""Sparse group convolution with B-spline kernels :math:`ψ_{jc}(z) = \sum_{ab} W_{jcab} B_a(z_x) B_b(z_y)`.

    Eager programs of degree 1 take :func:`fused_spline_convolution`, a compiled kernel, where it fits: it differs by
    rounding only (a test), but it can be differentiated only once, and not by ``torch.func``. All others take
    :func:`dense_spline_convolution`.

    Args:
        features: :math:`f_c`, already padded.
        poses: :math:`p_j(x)`, one for each window and output channel.
        control_points: W; its last two axes run along x and y.
        degree: the degree of the spline.
        kernel_size: the side of the square window.
        stride: the stride of the windows.
        active: the windows to look at; in all others, which the kernel skips, the result is 0 and has no gradient.
    """
    _check_splines(features, poses, control_points, kernel_size, stride, active)
    if not torch.compiler.is_compiling() and fused_splines_fit(features, control_points, degree, kernel_size):
        return fused_spline_convolution(
            features, poses, control_points, kernel_size=kernel_size, stride=stride, active=active
        )
    found = dense_spline_convolution(
        features, poses, control_points, degree=degree, kernel_size=kernel_size, stride=stride
    )
    return found if active is None else torch.where(active.unsqueeze(1), found, 0)


def _check_splines(
    features: Tensor, poses: Tensor, control_points: Tensor, kernel_size: int, stride: int, active: Tensor | None
) -> None:
    """Everything that a kernel relies on when it reads memory."""
    where = "spline_convolution"
    check_alike(where, {"features": features, "poses": poses, "control_points": control_points})
    (batch, channels, height, width), (outputs, size) = features.shape, control_points.shape[::3]
    grid = tuple((side - kernel_size) // stride + 1 for side in (height, width))
    expected = {
        "poses": (poses, (batch, outputs, *grid, 2)),
        "control_points": (control_points, (outputs, channels, size, size)),
        "active": (active, (batch, *grid)),
    }
    for name, (tensor, shape) in expected.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ValueError(
                f"{where}: `{name}` must have shape {shape} for features of shape {tuple(features.shape)} and windows "
                f"of {kernel_size} with stride {stride}, but has shape {tuple(tensor.shape)}."
            )


def dense_spline_convolution(
    features: Float[Tensor, "b c h w"],
    poses: Float[Tensor, "b m y x 2"],
    control_points: Float[Tensor, "m c s s"],
    *,
    degree: int,
    kernel_size: int,
    stride: int,
) -> Float[Tensor, "b m y x"]:
    """:func:`spline_convolution` in torch, by the responses to all control points.

    A square window consists of quadruples :math:`u, iu, -u, -iu` and perhaps a centre, and rotating z by 90 degrees
    only permutes the control points. So one basis serves four positions: each quadruple takes a matrix product with the
    four rotated copies of W, then a weighted sum over control points.
    """
    (outputs, _, size, _), (batch, _, height, width, _) = control_points.shape, poses.shape
    radius = spline_radius(kernel_size)
    patches = windows(features, kernel_size, stride).permute(4, 1, 0, 2, 3).flatten(2)  # (k, c, windows)
    px, py = poses.permute(4, 1, 0, 2, 3).flatten(2).unbind(0)  # (m, windows)
    out = torch.zeros_like(px)
    for (x, y), members in quadruples(kernel_size):
        if len(members) == 1:  # the centre, which every pose leaves in place
            basis = spline_basis(features.new_zeros(()), degree, size, radius)
            out = out + torch.einsum("mcab,a,b->mc", control_points, basis, basis) @ patches[members[0]]
            continue
        weight = torch.stack([torch.rot90(control_points, -quarter, (-2, -1)) for quarter in range(4)])
        weight = weight.permute(1, 3, 4, 0, 2).reshape(outputs * size * size, -1)
        responses = weight @ torch.cat([patches[k] for k in members])
        along_x = spline_basis(px * x + py * y, degree, size, radius).movedim(-1, 1)  # (m, size, windows)
        along_y = spline_basis(px * y - py * x, degree, size, radius).movedim(-1, 1)
        rows = (responses.view(outputs, size, size, -1) * along_y.unsqueeze(1)).sum(2)
        out = out + (rows * along_x).sum(1)
    return out.view(outputs, batch, height, width).transpose(0, 1)


def spline_window(
    control_points: Float[Tensor, "m c s s"], *, degree: int, kernel_size: int
) -> Float[Tensor, "m c k k"]:
    """The values of the kernels at the positions of a window that is not rotated: an ordinary convolution's weight."""
    places = control_points.new_tensor(positions_of(kernel_size))
    basis = spline_basis(places, degree, control_points.shape[-1], spline_radius(kernel_size))  # (k², 2, s)
    values = torch.einsum("mcab,ka,kb->mck", control_points, *basis.unbind(1))
    return values.unflatten(-1, (kernel_size, kernel_size))


@full_precision
def harmonic_convolution(
    features: Float[Tensor, "b c h w"],
    poses: Float[Tensor, "b m y x 2"],
    coefficients: Float[Tensor, "m c q r"],
    *,
    kernel_size: int,
    stride: int,
) -> Float[Tensor, "b m y x"]:
    r"""Sparse group convolution with kernels that are Fourier series on rings (ours).

    .. math:: ψ(z) = \mathrm{Re} \sum_{k=0}^{K} w_k(|z|)\, e^{ikθ_z}
        \quad\Rightarrow\quad \mathrm{out}_j = \mathrm{Re} \sum_k p_j^{-k}\, (f * K_{jk})

    with :math:`K_{jk}(u) = w_{jk}(|u|)\, e^{ikθ_u}`: rotating the window is a phase, so one ordinary convolution with
    2K + 1 channels for each output does all the work. Quarter turns are exact, whatever K.

    Args:
        features: :math:`f_c`, already padded.
        poses: :math:`p_j(x)`, one for each window and output channel.
        coefficients: :math:`w_0`, then real and imaginary parts of :math:`w_1, w_2, \dots`, on every ring; at the
            centre, which has no angle, only :math:`w_0` counts.
        kernel_size: the side of the square window.
        stride: the stride of the windows.
    """
    outputs, channels, parts, _ = coefficients.shape
    basis = features.new_tensor(_harmonics(kernel_size, parts // 2))
    weight = torch.einsum("mcqr,qsrk->msck", coefficients, basis)
    weight = weight.reshape(outputs * parts, channels, kernel_size, kernel_size)
    responses = F.conv2d(features, weight, stride=stride).unflatten(1, (outputs, parts)).unbind(2)
    px, py = poses.unbind(-1)
    out, x, y = responses[0], px, py
    for order in range(1, parts // 2 + 1):
        out = out + x * responses[2 * order - 1] + y * responses[2 * order]
        x, y = x * px - y * py, x * py + y * px
    return out


def harmonic_window(coefficients: Float[Tensor, "m c q r"], *, kernel_size: int) -> Float[Tensor, "m c k k"]:
    """:func:`spline_window` for Fourier series: the real parts at the identity."""
    parts = coefficients.shape[2]
    basis = coefficients.new_tensor(_harmonics(kernel_size, parts // 2))
    seen = basis[:, [0, *range(1, parts, 2)]].sum(1)
    return torch.einsum("mcqr,qrk->mck", coefficients, seen).unflatten(-1, (kernel_size, kernel_size))


@full_precision
def agreement_pool(
    features: Float[Tensor, "b c h w"], weights: Float[Tensor, "b y x m n"], *, kernel_size: int = 2, stride: int = 2
) -> Float[Tensor, "b c y x"]:
    r"""Pooling by agreement (Section 4.1): the mean of every window, weighted by the routing weights of its inputs.

    :math:`\sum_k w_k f_k / \sum_k w_k` for each channel, where :math:`w_k` is the routing weight of the channel's
    capsule at position k, averaged over the output capsules; a window without agreement gives 0. A drop-in replacement
    for ``max_pool2d`` and ``avg_pool2d``: equal weights give the average, a single weight picks one value.

    Args:
        features: one map for each input capsule of the routing.
        weights: from :meth:`equicaps.nn.SpatialCapsules2d.routing`, inputs sorted by capsule, then by position.
        kernel_size: the side of the windows that were routed.
        stride: the stride of the windows that were routed.
    """
    patches = windows(features, kernel_size, stride)
    shares = weights.mean(-2).unflatten(-1, (-1, kernel_size**2)).movedim(3, 1)
    if shares.shape != patches.shape:
        raise ValueError(
            f"agreement_pool: `weights` {tuple(weights.shape)} do not belong to windows of {kernel_size} and stride "
            f"{stride} of `features` {tuple(features.shape)}: expected (batch, height, width, outputs, "
            f"{patches.shape[1] * patches.shape[-1]}) on the grid {tuple(patches.shape[2:4])}."
        )
    return weighted_mean(patches.unsqueeze(-1), shares).squeeze(-1)


def rings(kernel_size: int) -> tuple[float, ...]:
    """The distinct distances of a window's positions from its centre, ascending."""
    return tuple(sorted({math.hypot(x, y) for x, y in positions_of(kernel_size)}))


@functools.cache
def _harmonics(kernel_size: int, order: int) -> list[list[list[list[float]]]]:
    """What coefficient q of ring r adds to part s of the kernel at position k: e^{imθ} as a real matrix."""
    parts, radii = 2 * order + 1, rings(kernel_size)
    positions = positions_of(kernel_size)
    basis = [[[[0.0] * len(positions) for _ in radii] for _ in range(parts)] for _ in range(parts)]
    for k, (x, y) in enumerate(positions):
        ring = radii.index(math.hypot(x, y))
        basis[0][0][ring][k] = 1.0
        for m in range(1, order + 1) if ring or radii[0] else ():
            c, s = math.cos(m * math.atan2(y, x)), math.sin(m * math.atan2(y, x))
            for q, part, value in ((1, 1, c), (0, 1, -s), (1, 0, s), (0, 0, c)):
                basis[2 * m - q][2 * m - part][ring][k] = value
    return basis
