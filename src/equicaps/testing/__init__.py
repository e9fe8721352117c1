"""Checks for groups and layers, public so that a new group or layer is proven with one call.

>>> from equicaps.groups import SO2
>>> check_group(SO2()).ok
True

A check raises :class:`LawViolationError` with a readable report, so that nobody can forget to look at it. Every law
is tried in float32 and float64 and for the batch shapes ``()``, ``(4,)`` and ``(2, 3)``, on seeded random elements.
"""

from equicaps.errors import LawViolationError
from equicaps.testing.check import Law, Report, check_distance, check_group, check_mean
from equicaps.testing.layers import (
    CapsuleOutput,
    EquivarianceError,
    assert_invariant,
    assert_left_equivariant,
    equivariance_error,
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
]
