"""Learning rate and momentum as pure functions of the step: nothing to save, nothing to restore."""

import math
from typing import NamedTuple

from equicaps.training.config import Number, Optimiser

START_DIVISOR, END_DIVISOR = 25.0, 1e4
"""One-cycle starts at rate / 25 and ends at a ten-thousandth of that, as torch's does."""
MOMENTUM_LOW, MOMENTUM_HIGH = 0.85, 0.95


class Pace(NamedTuple):
    """The learning rate and the first beta of one step."""

    rate: float
    beta: float


def pace(optimiser: Optimiser, step: Number, steps: int | None) -> Pace:
    """The pace of step ``step``, counted from 0, of ``steps``; while that is None, the pace of the first step.

    A shortened training also passes places between two steps.
    """
    if optimiser.schedule == "step":
        passed = sum(steps is not None and step >= fraction * steps for fraction in optimiser.step_at)
        return Pace(optimiser.rate * optimiser.step_factor**passed, optimiser.betas[0])
    start = optimiser.rate / START_DIVISOR
    if steps is None:
        return Pace(start, MOMENTUM_HIGH)
    last = steps - 1
    peak = min(max(optimiser.warmup * steps - 1, 1.0), last)
    if step <= peak:
        rise = step / peak if peak else 1.0
        return Pace(_cosine(start, optimiser.rate, rise), _cosine(MOMENTUM_HIGH, MOMENTUM_LOW, rise))
    fall = (step - peak) / (last - peak)
    return Pace(_cosine(optimiser.rate, start / END_DIVISOR, fall), _cosine(MOMENTUM_LOW, MOMENTUM_HIGH, fall))


def _cosine(start: float, end: float, progress: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * progress))
