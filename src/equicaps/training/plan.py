"""How long to train if nobody says: enough views of every image, within a bound, and fewer if more do not help."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from equicaps.training.config import Number

VIEWS_PER_IMAGE, FEWEST_VIEWS = 60, 20_000
"""How often each image should be seen, and the number of views below which a network has not learned anything yet."""
PATIENCE = 1 / 3
"""The fraction of the plan during which validation images have to be classified better than ever before."""
HASTE = 3
"""How many times faster the rest of the schedule is passed if they are not."""
LEARNED = 99.0
"""In percent: if as many training views are classified correctly, there is nothing left to learn from them."""
WATCHED = ("accuracy", "balanced_accuracy")
"""The figures of an evaluation that decide. If almost all images are of one class, the first alone says little."""


def enough_views(images: int) -> int:
    """The number of views that a training on this many images should see.

    Repeated images count as often as they are there, so that those of frequent classes, too, are seen often enough.
    """
    return max(VIEWS_PER_IMAGE * images, FEWEST_VIEWS)


class Plan(NamedTuple):
    """What was planned when the speed had been measured."""

    steps: int
    views_per_image: float
    """Of different images, on average."""
    cpu_minutes: float
    is_enough: bool
    """Whether the budget did not limit the number of views."""


@dataclass(frozen=True)
class Course:
    """A schedule of ``planned`` steps.

    After ``shortened_after`` steps, if given, the rest of them is passed :data:`HASTE` times faster: the rate
    falls to its end all the same.
    """

    planned: int
    shortened_after: int | None = None

    @property
    def steps(self) -> int:
        """The number of steps to make."""
        return self.planned if self.shortened_after is None else self.shortened_after + self._hasty_steps

    @property
    def _hasty_steps(self) -> int:
        return math.ceil((self.planned - (self.shortened_after or 0)) / HASTE)

    def position(self, step: int) -> Number:
        """The place in the schedule of step number ``step``, from 0; the last step is at ``planned - 1``."""
        if self.shortened_after is None or step < self.shortened_after:
            return step
        stride = (self.planned - self.shortened_after) / self._hasty_steps
        return self.planned - 1 - (self.steps - 1 - step) * stride


def has_stalled(curve: Sequence[Mapping[str, Number]], course: Course | None) -> bool:
    """Whether no watched figure has exceeded its former best during the last third of a plan not yet shortened."""
    if not curve or course is None or course.shortened_after is not None:
        return False
    begin = curve[-1]["step"] - PATIENCE * course.planned
    earlier = [row for row in curve if row["step"] <= begin]
    recent = [row for row in curve if row["step"] > begin]
    names = [name for name in WATCHED if name in curve[-1]]
    return (
        bool(earlier)
        and bool(names)
        and all(max(row[name] for row in recent) <= max(row[name] for row in earlier) for name in names)
    )


class Outlook(NamedTuple):
    """Whether a longer training would have helped; accuracies in percent."""

    longer_helps: bool
    training_accuracy: float
    """On the last training views."""
    validation_accuracy: float
    validation_accuracy_before: float
    """The best one before the last third of the training."""
    rising: bool
    """Whether the validation accuracy has risen since, by more than one standard error."""
    shortened: bool
    """Whether it had stopped rising before, so that the training was shortened; it may have risen at the end."""


def outlook(
    curve: Sequence[Mapping[str, Any]], training_accuracy: float | None, *, shortened: bool = False
) -> Outlook | None:
    """Longer helps if the validation accuracy was still rising and the training views were not all learned.

    None if there were no validation images, or no evaluations before the last third.
    """
    if not curve or training_accuracy is None or "validation_accuracy" not in curve[-1]:
        return None
    last = curve[-1]
    earlier = [row["accuracy"] for row in curve[:-1] if row["step"] <= (1 - PATIENCE) * last["step"]]
    if not earlier:
        return None
    now, before, images = last["validation_accuracy"], max(earlier), last["validation_images"]
    rising = now > before + math.sqrt(max(now * (100 - now), 0.0) / images)
    helps = rising and not shortened and training_accuracy < LEARNED
    return Outlook(helps, training_accuracy, now, before, rising, shortened)
