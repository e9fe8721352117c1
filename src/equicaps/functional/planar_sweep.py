"""The sweep over votes of planar routing: votes are made, summed and forgotten in pieces that fit into the cache.

All work that grows with the number of votes happens behind one function, :func:`piecewise_sums`. Another sweep with the
same arguments and results, such as a fused kernel, belongs beside it, and is chosen where all implementations of
Algorithm 1 are: in :func:`equicaps.functional.route_windows`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from equicaps.numerics import (
    CANCELLATION,
    FAINT_DIRECTION,
    NO_EVIDENCE,
    above_zero,
    flatten_at_one,
    noise_floor,
    steepened,
)

_PIECE = 2**18
"""The number of votes handled at once: one MiB for each coordinate."""

_WINDOWS = 256
"""The least number of windows handled at once, so that rows are long enough for vector units."""


def over_window(values: Float[Tensor, "*batch k windows"]) -> Float[Tensor, "*batch windows"]:
    """The sum over positions in reading order; in a 2x2 block, opposite positions are added first.

    A rotated block then has the same sum to the bit: a quarter turn swaps the two pairs, or the members of each. Any
    difference in rounding would become an angle where poses nearly cancel.
    """
    if values.shape[-2] != 4:
        return values.sum(-2)
    first, second, third, fourth = values.unbind(-2)
    return (first + fourth) + (second + third)


class Sums(NamedTuple):
    """What Algorithm 1 needs to know about the votes :math:`v_i` of every output capsule and window."""

    resultant: Float[Tensor, "2 m windows"]
    """The sum of :math:`w_i v_i` with the weights of the last iteration."""
    total: Float[Tensor, "m windows"]
    """The sum of those weights."""
    everyone: Float[Tensor, "2 m windows"]
    """The sum of :math:`s_i v_i` with the voices s."""
    fade: Float[Tensor, "m windows"]
    """The presence of the pose before the last one; 1 without iterations."""


def piecewise_sums(
    features: Float[Tensor, "f k windows"],
    weight: Float[Tensor, "e m c f"],
    poses: Float[Tensor, "2 c k windows"],
    activations: Float[Tensor, "c k windows"],
    voices: Float[Tensor, "c k windows"],
    alpha: Float[Tensor, ""],
    beta: Float[Tensor, ""],
    iterations: int,
    floor: float = CANCELLATION,
) -> Sums:
    """Make the votes, iterate the routing and return the sums; differentiable once in every tensor.

    Votes exist for only some windows and output capsules at a time, and the backward pass makes them again.

    Args:
        features: see :func:`equicaps.functional.planar_route`, also for ``weight``, ``poses`` and ``activations``.
        weight: from features to transformations.
        poses: of the input capsules.
        activations: of the input capsules.
        voices: how far each input counts in the mean distance, see :func:`equicaps.numerics.speaks`.
        alpha: the slope of σ.
        beta: the shift of σ.
        iterations: the number of routing iterations.
        floor: see :class:`equicaps.groups.SO2`.
    """
    inputs = (tensor.flatten(-3, -2) for tensor in (poses, activations, voices))
    sums = _PiecewiseSums.apply(features, weight, *inputs, alpha / 2, beta - alpha / 2, iterations, floor)  # type: ignore[no-untyped-call] # torch
    return Sums(*sums)


class _PiecewiseSums(torch.autograd.Function):
    """:class:`Sums`, with capsules and positions in one axis and σ as half its slope and its shift."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        *tensors, iterations, floor = arguments
        ctx.save_for_backward(*tensors)
        ctx.iterations, ctx.floor = iterations, floor
        features, weight, *_ = tensors
        resultant = features.new_empty(2, weight.shape[1], features.shape[2])
        total, fade = torch.empty_like(resultant[0]), torch.empty_like(resultant[0])
        everyone = torch.empty_like(resultant)
        for rows, columns in _pieces(features, weight):
            piece = _Piece(_cut(tensors, rows, columns), floor)
            for _ in range(iterations):
                piece.iterate()
            resultant[:, rows, columns], total[rows, columns] = piece.resultant, piece.total
            everyone[:, rows, columns], fade[rows, columns] = piece.sum_of(piece.voices), piece.fade
        return resultant, total, everyone, fade

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        totals = [torch.zeros_like(tensor) for tensor in tensors]
        for rows, columns in _pieces(*tensors[:2]):
            piece = _Piece(_cut(tensors, rows, columns), ctx.floor)
            for iteration in range(1, ctx.iterations + 1):
                piece.iterate(last=iteration == ctx.iterations)
            found = piece.backward(*(gradient[..., rows, columns] for gradient in gradients))
            for total, gradient in zip(_cut(totals, rows, columns), found, strict=True):
                total += gradient
        return (*totals, None, None)


def _pieces(features: Tensor, weight: Tensor) -> Iterator[tuple[slice, slice]]:
    """Slices of the output capsules and of the windows that together cover all votes."""
    (_, outputs, capsules, _), (positions, count) = weight.shape, features.shape[1:]
    inputs = capsules * positions
    width = max(1, min(count, max(_WINDOWS, _PIECE // (inputs * outputs))))
    height = max(1, min(outputs, _PIECE // (inputs * width)))
    for column in range(0, count, width):
        for row in range(0, outputs, height):
            yield slice(row, row + height), slice(column, column + width)


def _cut(tensors: Any, rows: slice, columns: slice) -> list[Tensor]:
    features, weight, poses, activations, voices, *numbers = tensors
    windows = (tensor[..., columns] for tensor in (poses, activations, voices))
    return [features[..., columns], weight[:, rows], *windows, *numbers]


def _over_inputs(values: Float[Tensor, "*batch n windows"], positions: int) -> Float[Tensor, "*batch windows"]:
    """The sum over capsules, then over positions."""
    return over_window(values.unflatten(-2, (-1, positions)).sum(-3))


class _Step(NamedTuple):
    """What one iteration keeps for the backward pass."""

    start: "_Direction"
    q: Tensor
    gate: Tensor
    w: Tensor


class _Piece:
    """The votes of some output capsules in some windows, (2, m, n, windows), and their sums.

    Derivatives are written by hand, in few and mostly in-place passes, because networks spend most of their time here.
    """

    def __init__(self, tensors: list[Tensor], floor: float) -> None:
        self.floor = floor
        features, self.weight, self.poses, self.a, self.voices, self.half_alpha, self.shift = tensors
        emitted, outputs, _, width = self.weight.shape
        px, py = self.poses.unbind(0)
        self.flat = features.reshape(width, -1)
        self.positions = features.shape[1]
        raw = (self.weight.reshape(-1, width) @ self.flat).view(emitted, outputs, len(self.a), -1)
        if emitted == 2:
            self.scale = (
                torch.addcmul(raw.new_full((), FAINT_DIRECTION**2), raw[0], raw[0]).addcmul_(raw[1], raw[1]).rsqrt_()
            )
            self.t = raw.mul_(self.scale)
        else:
            self.t = torch.cat((torch.cos(raw), torch.sin(raw)))
        self.v, turned = self.t * px, self.t * py  # not addcmul, which is fused: x and y would be rounded differently
        self.v[0] -= turned[1]
        self.v[1] += turned[0]
        self.resultant = self.sum_of(self.a)
        self.total = _over_inputs(self.a, self.positions).expand_as(self.resultant[0])
        self.fade = torch.ones_like(self.total)
        self.steps: list[_Step] = []

    def sum_of(self, weights: Tensor) -> Tensor:
        """Σ_i w_i v_i."""
        return _over_inputs(self.v * weights, self.positions)

    def along(self, vectors: Tensor, start: Tensor) -> Tensor:
        """start + ⟨vector, v_i⟩ for a vector (2, m, windows) of every output capsule."""
        x, y = vectors.unsqueeze(2).unbind(0)
        return torch.addcmul(start, self.v[0], x).addcmul_(self.v[1], y)

    def iterate(self, *, last: bool = False) -> None:
        """w = a sigmoid(⟨q, v⟩ + shift) for the direction of the resultant, then the new resultant unless ``last``."""
        start = _Direction(self.resultant, self.total, self.fade, self.floor)
        self.fade = flatten_at_one(start.value.square().sum(0))
        q = start.value * self.half_alpha
        x, y = (self.v * q.unsqueeze(2)).unbind(0)
        gate = x.add_(y).add_(self.shift).sigmoid_()
        w = gate * self.a
        self.steps.append(_Step(start, q, gate, w))
        if not last:
            self.resultant, self.total = self.sum_of(w), _over_inputs(w, self.positions)

    def backward(self, d_resultant: Tensor, d_total: Tensor, d_everyone: Tensor, d_fade: Tensor) -> tuple[Tensor, ...]:
        """The gradients of the piece's tensors, in their order."""
        zero = torch.zeros_like(self.shift)
        dv = self.voices * d_everyone.unsqueeze(2)
        d_voices = self.along(d_everyone, zero).sum(0)
        da = torch.zeros_like(self.a)
        d_half_alpha, d_shift = torch.zeros_like(self.half_alpha), torch.zeros_like(self.shift)
        for start, q, gate, w in reversed(self.steps):
            dw = self.along(d_resultant, d_total.unsqueeze(1))
            gated = gate.mul_(dw)
            da += gated.sum(0)
            slope = dw.sub_(gated).mul_(w)  # the derivative of w is w (1 - gate)
            dv.addcmul_(w, d_resultant.unsqueeze(2)).addcmul_(slope, q.unsqueeze(2))
            dq = self.sum_of(slope)
            d_shift += slope.sum()
            d_half_alpha += (dq * start.value).sum()
            d_resultant, d_total, d_fade = start.backward(dq * self.half_alpha, d_fade)
        dv.addcmul_(self.a, d_resultant.unsqueeze(2))
        da += self.along(d_resultant, zero).sum(0)
        da += d_total.sum(0)
        return (*self._votes_backward(dv), da, d_voices, d_half_alpha, d_shift)

    def _votes_backward(self, dv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        along = (self.t * dv).sum((0, 1))
        across = (self.t[0] * dv[1]).addcmul_(self.t[1], dv[0], value=-1).sum(0)
        angle = (self.v[0] * dv[1]).addcmul_(self.v[1], dv[0], value=-1)  # dv/dθ = iv
        raw, weight = angle, self.weight
        if len(weight) == 2:  # dt/dθ = it, but i is applied to the weight, which is smaller
            raw, weight = self.t.mul_(angle.mul_(self.scale)), torch.stack((weight[1], -weight[0]))
        raw = raw.view(-1, self.flat.shape[1])
        features = (weight.reshape(-1, len(self.flat)).T @ raw).view(len(self.flat), -1, self.a.shape[1])
        d_weight = (raw @ self.flat.T).view(weight.shape)
        if len(weight) == 2:
            d_weight = torch.stack((-d_weight[1], d_weight[0]))
        return features, d_weight, torch.stack((along, across))


class _Direction:
    """numerics.safe_normalize of a resultant, coordinates first, times a factor, with its derivative."""

    def __init__(self, resultant: Tensor, total: Tensor, fade: Tensor, relative: float) -> None:
        self.relative = relative
        self.total, self.floor = total, noise_floor(total.unsqueeze(-1), relative).squeeze(-1)
        self.scaled = resultant / self.floor
        self.square = above_zero(self.scaled.square().sum(0))
        z = self.square.sqrt()
        self.tanh = torch.tanh(steepened(z))
        self.ratio = self.tanh / z
        self.fade = fade
        self.mean = self.scaled * self.ratio
        self.value = self.mean * fade

    def backward(self, d_value: Tensor, d_presence: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The gradients of the resultant, of the total weight and of the factor."""
        d_value = d_value + self.value * (4 * d_presence * (1 - self.value.square().sum(0)))
        d_fade = (self.mean * d_value).sum(0)
        d_mean = self.fade * d_value
        bend = ((1 - self.tanh.square()) * (1 + 3 * self.square) - self.ratio) / self.square
        d_scaled = self.ratio * d_mean + self.scaled * (bend * (self.scaled * d_mean).sum(0))
        d_resultant = d_scaled / self.floor
        d_floor = -(d_resultant * self.scaled).sum(0) * (self.total > NO_EVIDENCE)
        return d_resultant, self.relative * d_floor, d_fade
