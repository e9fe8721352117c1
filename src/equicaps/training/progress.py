"""Where a training stands: recent figures, speed and the time that is left."""

from collections.abc import Mapping
from typing import NamedTuple

from equicaps.training.config import Number
from equicaps.training.plan import Plan
from equicaps.training.trainer import StepFigures

SPEED_STEPS = 30
"""The speed is measured over this many steps."""


class Progress(NamedTuple):
    """Where a training stands after a step, for a progress bar."""

    step: int
    steps: int | None
    """None while CPU-minutes have not been converted to steps."""
    figures: StepFigures
    images_per_second: float
    seconds_left: float | None
    evaluation: Mapping[str, Number] | None = None
    """The figures of an evaluation, right after it."""
    plan: Plan | None = None
    """What was planned, once the speed has been measured; None in a resumed training, which keeps its plan."""


class RecentSteps:
    """The mean figures since the last row of the log, and the speed of the last steps."""

    def __init__(self) -> None:
        self._rows: list[StepFigures] = []
        self._seconds: list[float] = []

    def add(self, figures: StepFigures, seconds: float) -> None:
        """Record the figures of a step and the seconds that it took."""
        self._rows.append(figures)
        self._seconds = [*self._seconds, seconds][-SPEED_STEPS:]

    def images_per_second(self, batch: int) -> float:
        """The speed for batches of this size."""
        return batch * len(self._seconds) / sum(self._seconds)

    def take_means(self) -> dict[str, Number]:
        """The mean figures since this was last called."""
        names = ("loss", "accuracy", "agreement_accuracy", "rate")
        means = {name: sum(getattr(row, name) for row in self._rows) / len(self._rows) for name in names}
        self._rows = []
        return means
