"""The error between two tensors."""

import math

from torch import Tensor


def relative_error(actual: Tensor, expected: Tensor) -> float:
    """The largest deviation, relative to the largest expected coordinate or to 1 if that is larger; inf for NaN."""
    error = ((actual - expected).abs().max() / expected.abs().max().clamp_min(1)).item()
    return math.inf if math.isnan(error) else error
