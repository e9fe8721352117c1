"""Checks of groups and layers: one call tests a new group or layer against every law.

>>> from equicaps.groups import SO2
>>> check_group(SO2()).ok
True

A check that fails raises :class:`LawViolationError` with a readable report, so that a failure cannot be overlooked.
Every law is tested in float32 and float64, for the batch shapes ``()``, ``(4,)`` and ``(2, 3)``, on seeded random
elements.
"""

from equicaps.errors import LawViolationError
from equicaps.testing.check import Law, Report, check_distance, check_group, check_mean
from equicaps.testing.layers import (
    CapsuleOutput,
    EquivarianceError,
    assert_invariant,
    assert_left_equivariant,
    equivariance_error,
    grid_equivariance_error,
)

__all__ = [
    "CapsuleOutput",
    "EquivarianceError",
    "Law",
    "LawViolationError",
    "Report",
    "assert_invariant",
    "assert_left_equivariant",
    "check_distance",
    "check_group",
    "check_mean",
    "equivariance_error",
    "grid_equivariance_error",
]
