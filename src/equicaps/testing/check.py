"""Check a group against every law, and report the errors."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from equicaps.errors import LawViolationError
from equicaps.groups import Group
from equicaps.numerics import law_tolerance
from equicaps.testing.laws import (
    DISTANCE_LAWS,
    GROUP_LAWS,
    MEAN_LAWS,
    LawFunction,
    Sample,
    distance_is_symmetric,
    mean_is_closed,
)

DTYPES = (torch.float32, torch.float64)
SHAPES: tuple[tuple[int, ...], ...] = ((), (4,), (2, 3))


@dataclass(frozen=True)
class Law:
    """The measurement of one law: the largest relative error in each dtype, over all batch shapes."""

    name: str
    identity: str
    errors: tuple[float, ...]
    promised: bool = True
    note: str = ""

    @property
    def holds(self) -> bool:
        """Whether the identity holds up to rounding in every dtype."""
        return all(error <= law_tolerance(dtype) for error, dtype in zip(self.errors, DTYPES, strict=True))


@dataclass(frozen=True)
class Report:
    """The result of a check; its ``str`` is a table."""

    subject: str
    laws: tuple[Law, ...]

    @property
    def failures(self) -> tuple[Law, ...]:
        """The promised laws that do not hold."""
        return tuple(law for law in self.laws if law.promised and not law.holds)

    @property
    def ok(self) -> bool:
        """Whether all promised laws hold."""
        return not self.failures

    def __str__(self) -> str:
        verdict = "all laws hold" if self.ok else f"{len(self.failures)} of {len(self.laws)} laws FAIL"
        limits = ", ".join(f"{law_tolerance(dtype):.0e} in {_name(dtype)}" for dtype in DTYPES)
        width = max(len(law.name) for law in self.laws)
        lines = [f"{self.subject}: {verdict} (largest relative error; limit {limits})"]
        for law in self.laws:
            status = ("ok  " if law.holds else "FAIL") if law.promised else "-   "
            figures = "  ".join(f"{error:8.1e}" for error in law.errors)
            note = law.note or ("" if law.promised else "not promised by this group")
            lines.append(f"  {status} {law.name:<{width}}  {figures}  {law.identity}{f'  [{note}]' if note else ''}")
        return "\n".join(lines)


def check_group(group: Group, *, seed: int = 0) -> Report:
    """Check every law: group, action, exp and log, M, δ, gradients at degenerate points, sampling, broadcasting.

    Args:
        group: the group to check.
        seed: the seed of the random elements.

    Returns:
        The measured error of every law.

    Raises:
        LawViolationError: if a promised law does not hold. Closure of M and symmetry of δ count as promised unless the
            group sets ``mean_is_closed`` or ``distance_is_symmetric`` to False.
    """
    return _check(group, (*GROUP_LAWS, *MEAN_LAWS, *DISTANCE_LAWS), seed)


def check_mean(group: Group, *, seed: int = 0) -> Report:
    """Check only the laws of the weighted mean M; see :func:`check_group`."""
    return _check(group, MEAN_LAWS, seed)


def check_distance(group: Group, *, seed: int = 0) -> Report:
    """Check only the laws of the distance δ; see :func:`check_group`."""
    return _check(group, DISTANCE_LAWS, seed)


def _check(group: Group, laws: Sequence[LawFunction], seed: int) -> Report:
    if not isinstance(group, Group):
        raise TypeError(f"check_group: expected a Group, an instance such as SO2(), but got {group!r}.")
    promised: dict[LawFunction, bool] = {
        mean_is_closed: group.mean_is_closed,
        distance_is_symmetric: group.distance_is_symmetric,
    }
    measured = tuple(_measure(group, law, seed, promised.get(law, True)) for law in laws)
    report = Report(repr(group), measured)
    if not report.ok:
        raise LawViolationError(str(report))
    return report


def _measure(group: Group, law: LawFunction, seed: int, promised: bool) -> Law:
    errors, note = [], ""
    for dtype in DTYPES:
        worst = 0.0
        for shape in SHAPES:
            sample = Sample(group, shape, dtype, torch.Generator().manual_seed(seed))
            try:
                worst = max(worst, law(sample))
            except Exception as error:
                worst, note = math.inf, f"{type(error).__name__} for batch shape {shape}: {error}"
        errors.append(worst)
    return Law(law.__name__, law.__doc__ or "", tuple(errors), promised, note)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
