"""What ``equicaps train`` says about a plan, a result, and whether a longer training would have helped."""

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from equicaps._checks import printable
from equicaps.cli.reporting import say
from equicaps.training import Budget, Result
from equicaps.training.plan import Plan

FEW_VIEWS, ENOUGH_ACCURACY = 20, 90.0
"""A training was too short if it saw each image less often and, in percent, classified fewer views correctly."""
MORE_IMAGES = 5.0
"""Percentage points: if validation images do so much worse than training views, more images would help."""
TINY = 2
"""In images of at most so many pixels in height and width there is hardly anything to see."""
CLASSES_IN_TABLE, WORST = 10, 5
"""A table for so many classes at most; otherwise the most frequent confusions."""


def describe_budget(budget: Budget, steps: int | None, views_per_step: int, images: int, *, kind: str = "image") -> str:
    """How long it will take at most, as far as it is known before the first step."""
    if steps is not None:
        return f"each training {kind} will be seen about {_times(steps * views_per_step / images)}"
    bound = f"trains for at most {budget.most_minutes:g} CPU-minutes, and then measures"
    return f"{bound}; the first steps tell how fast this machine is"


def describe_plan(plan: Plan, budget: Budget, *, watched: bool, kind: str = "image") -> str:
    """What was planned after the first steps."""
    seen = f"each training {kind} will be seen about {_times(plan.views_per_image)}"
    if budget.up_to_minutes is None:
        return f"in {budget.most_minutes:g} CPU-minutes {seen}"
    limit = "" if plan.is_enough else ", which is all that the time allows"
    earlier = f"; less if the validation {kind}s stop improving" if watched else ""
    return f"plan: {seen}{limit}, in {plan.cpu_minutes:.1f} CPU-minutes{earlier}"


def advise(result: Result, images: int, *, reducible: bool = False, kind: str = "image") -> str:
    """Whether a longer training would have helped; empty if nothing can be said.

    Args:
        result: what the training produced.
        images: the number of different images or shapes that it was trained on.
        reducible: whether they were images larger than they have to be.
        kind: what it was trained on, image or shape.
    """
    found = result.outlook
    if found is None:
        return _if_short(result, images, reducible, kind)
    before, now, views = (
        f"{accuracy:.1f} %"
        for accuracy in (found.validation_accuracy_before, found.validation_accuracy, found.training_accuracy)
    )
    if found.longer_helps:
        return (
            f"longer would probably help: the validation accuracy was still rising ({before} before the last third, "
            f"{now} at the end), and {views} of the last training views were classified correctly. Train again in a "
            f"new folder, for example with --minutes {math.ceil(2 * result.cpu_minutes)}."
        )
    if found.shortened:
        reason = f"the validation accuracy had stopped rising; it is {now} at the end (training views: {views})"
    elif found.rising:
        reason = f"{views} of the last training views were classified correctly, and {now} of the validation {kind}s"
    else:
        reason = (
            f"the validation accuracy has stopped rising ({before} before the last third, {now} at the end; training "
            f"views: {views})"
        )
    more = found.training_accuracy - found.validation_accuracy > MORE_IMAGES
    return f"longer would hardly help: {reason}." + (f" More training {kind}s would." if more else "")


def _if_short(result: Result, images: int, reducible: bool, kind: str) -> str:
    """Advice after a training that saw each image only a few times and does not classify even those correctly."""
    seen, accuracy = result.images / images, result.training_accuracy
    if accuracy is None or accuracy >= ENOUGH_ACCURACY or seen >= FEW_VIEWS:
        return ""
    minutes = math.ceil(result.cpu_minutes * FEW_VIEWS / seen)
    return (
        f"note: this training was short: it saw each of its {images:,} {kind}s about {_times(seen)}, and "
        f"classified {accuracy:.0f} % of the last ones correctly. Train longer in a new folder, for example with "
        f"--minutes {minutes}{', or on smaller images with --size' if reducible else ''}."
    )


def show_confusion(
    console: Console, counts: Sequence[Sequence[int]], classes: Sequence[str], *, kind: str = "image"
) -> None:
    """A table of true classes and answers; the most frequent confusions if there are too many classes for one."""
    if len(classes) > CLASSES_IN_TABLE:
        if line := worst_confusions(counts, classes):
            say(console, line)
        return
    say(console, f"test {kind}s by true class (rows) and answer (columns):")
    table = Table()
    table.add_column("true class")
    for name in classes:
        table.add_column(Text(printable(name)), justify="right")
    for name, row in zip(classes, counts, strict=True):
        table.add_row(Text(printable(name)), *(str(count) if count else "" for count in row))
    console.print(table)


def worst_confusions(counts: Sequence[Sequence[int]], classes: Sequence[str]) -> str:
    """The most frequent confusions in words; empty if there is none."""
    wrong = [
        (count, sum(row), true, answer)
        for true, row in zip(classes, counts, strict=True)
        for answer, count in zip(classes, row, strict=True)
        if count and answer != true
    ]
    worst = sorted(wrong, key=lambda entry: -entry[0])[:WORST]
    told = (f"{true} taken for {answer} ({count:,} of {total:,})" for count, total, true, answer in worst)
    return f"most frequent confusions: {', '.join(told)}" if worst else ""


def _times(count: float) -> str:
    """On average, because images that are repeated are seen more often than others."""
    return f"{count:.1f} times on average" if count < 10 else f"{count:,.0f} times on average"
