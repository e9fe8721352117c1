"""Planar routing in one fused kernel: votes never leave the first-level cache. The loops are in ``fused_routing.c``."""

import ctypes
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from equicaps import numerics
from equicaps.functional.compiled import address, library
from equicaps.functional.planar_routing import PlanarRouting
from equicaps.functional.planar_sweep import over_window
from equicaps.functional.routing import Agreement
from equicaps.functional.sigma import Sigma, Sigmoid
from equicaps.numerics import full_precision, noise_floor, safe_reciprocal, speaks

POSITIONS, MOST_ITERATIONS = 4, 3
"""What the kernel is written for: 2x2 blocks, one to three iterations."""
_AT_ONCE = 2**19
"""Gradients of transformations that are kept for one matrix product: two MiB."""


class _Limits(ctypes.Structure):
    _fields_ = [(name, ctypes.c_float) for name in ("cancellation", "certain", "no_evidence", "faint_direction",
                                                    "opposed_weights", "smallest")]  # fmt: skip


class _Layer(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_long) for name in ("capsules", "outputs", "features", "windows", "padded")),
        ("half_alpha", ctypes.c_float), ("shift", ctypes.c_float), ("limits", _Limits),
    ]  # fmt: skip


def fused_route_fits(
    features: Float[Tensor, "f k windows"], weight: Float[Tensor, "e m c f"], iterations: int, agreement: Agreement
) -> bool:
    """Whether :func:`fused_route` serves this case, and a compiler has made it."""
    written_for = features.shape[1] == POSITIONS and len(weight) == 2 and 1 <= iterations <= MOST_ITERATIONS
    placed = features.device.type == "cpu" and features.dtype == torch.float32
    return bool(written_for and placed and agreement == "mean" and library("fused_routing") is not None)


@full_precision
def fused_route(
    features: Float[Tensor, "f k windows"], weight: Float[Tensor, "e m c f"], poses: Float[Tensor, "2 c k windows"],
    activations: Float[Tensor, "c k windows"], *, iterations: int = 2, sigma: Sigma = Sigmoid(),
    floor: float = numerics.CANCELLATION,
) -> PlanarRouting:  # fmt: skip
    """:func:`equicaps.functional.planar_route` where :func:`fused_route_fits`; equal up to rounding (a test).

    Quarter turns of a block give the same bits, since the kernel adds opposite positions first. The derivatives by the
    parameters of σ are summed in float64.
    """
    p, a = poses.flatten(1, 2), activations.flatten(0, 1)
    voices = speaks(a.T).T
    count = over_window(voices.unflatten(0, activations.shape[:2]).sum(0))
    inverse = safe_reciprocal(count, noise_floor(count.unsqueeze(-1), numerics.OPPOSED_WEIGHTS).squeeze(-1)) / 2
    alpha, beta = (torch.as_tensor(getattr(sigma, name), dtype=features.dtype) for name in ("alpha", "beta"))
    return PlanarRouting(
        *_Fused.apply(  # type: ignore[no-untyped-call] # torch
            features, weight, p, a, voices, torch.stack((count, inverse)), alpha, beta, iterations, floor
        )
    )


class _Fused(torch.autograd.Function):
    """Poses (2, m, windows) and activations (m, windows)."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        *tensors, alpha, beta, iterations, floor = arguments
        given = [tensor.detach().contiguous() for tensor in tensors]
        features, weight = given[:2]
        (_, outputs, capsules, width), windows = weight.shape, features.shape[2]
        kernel = library("fused_routing")
        assert kernel is not None
        lanes = kernel.lanes()
        padded = -(-windows // lanes) * lanes
        half_alpha = alpha.item() / 2
        constants = ("CERTAIN", "NO_EVIDENCE", "FAINT_DIRECTION", "OPPOSED_WEIGHTS")
        limits = _Limits(floor, *(getattr(numerics, name) for name in constants), torch.finfo(torch.float32).eps ** 2)
        layer = _Layer(capsules, outputs, width, windows, padded, half_alpha, beta.item() - half_alpha, limits)
        out = features.new_empty(5 + 3 * (iterations + 1), outputs, padded)
        inputs = POSITIONS * capsules
        scratch = features.new_empty((POSITIONS * width + 6 * inputs + 2) * lanes)
        kernel.route(ctypes.byref(layer), iterations, *map(address, (*given, scratch, out)))
        ctx.save_for_backward(*given, out)
        ctx.layer, ctx.iterations, ctx.lanes = layer, iterations, lanes
        return out[:2, :, :windows], out[2, :, :windows]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        features, weight, *given, _ = ctx.saved_tensors
        layer, lanes, kernel = ctx.layer, ctx.lanes, library("fused_routing")
        assert kernel is not None
        (_, outputs, capsules, width), windows, inputs = weight.shape, features.shape[2], POSITIONS * weight.shape[2]
        gradient = features.new_zeros(3, outputs, layer.padded)
        gradient[:2, :, :windows], gradient[2, :, :windows] = gradients
        by_inputs = [torch.empty_like(tensor) for tensor in given]
        by_features, by_weight = torch.empty_like(features), features.new_zeros(width, 2 * outputs * capsules)
        transposed = weight.reshape(-1, width).T.contiguous()
        by_sigma = torch.zeros(4, dtype=torch.float64)
        at_once = max(64, min(1024, _AT_ONCE // (2 * POSITIONS * outputs * inputs) // lanes * lanes))
        scratch = features.new_empty((POSITIONS * width + (13 + ctx.iterations) * inputs + 4) * lanes)
        raw = features.new_empty(2 * outputs * inputs * at_once)
        for first in range(0, windows, at_once):
            last = min(windows, first + at_once)
            columns = -(-(last - first) // lanes) * lanes
            kernel.route_backward(
                ctypes.byref(layer), ctx.iterations, *map(address, (*ctx.saved_tensors, gradient)),
                *map(ctypes.c_long, (first, last, columns)), *map(address, (scratch, raw, *by_inputs, by_sigma)),
            )  # fmt: skip
            # What is left are matrix products, which nobody does faster than the BLAS.
            piece = raw[: 2 * outputs * inputs * columns].view(2 * outputs * capsules, -1)
            part = F.pad(features[..., first:last], (0, columns - (last - first)))
            by_features[..., first:last] = (transposed @ piece).view(width, POSITIONS, columns)[..., : last - first]
            by_weight.addmm_(part.reshape(width, -1), piece.T)
        half_alpha, shift, alpha, beta = by_sigma.tolist()
        by_alpha, by_beta = (features.new_tensor(value) for value in ((half_alpha - shift) / 2 + alpha, shift + beta))
        return by_features, by_weight.T.reshape(weight.shape), *by_inputs, by_alpha, by_beta, None, None
