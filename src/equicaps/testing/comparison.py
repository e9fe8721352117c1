"""How far two tensors are apart."""

import math

from torch import Tensor


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """Largest deviation relative to the largest coordinate, or absolute where that is below 1; NaN counts as inf."""
    error = ((actual - expected).abs().max() / expected.abs().max().clamp_min(1)).item()
    return math.inf if math.isnan(error) else error
