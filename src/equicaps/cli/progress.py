"""Progress bars for a training, and for the images or shapes that it reads."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from equicaps.data.reduced import Watch
from equicaps.training import Progress
from equicaps.training.plan import Plan

LEAST_UNDEFINED = 0.5
"""The percentage of undefined poses above which they are mentioned, because less rounds to 0."""
PATIENCE = 5.0
"""After so many seconds a bar shows how many images or shapes have been read."""


@contextlib.contextmanager
def reading_bar(console: Console, *, kind: str = "image") -> Iterator[Watch]:
    """A bar, on a terminal, for images or shapes that are read from files, if there are so many that it takes time."""
    bars = Bars(
        TextColumn(f"reading {kind}s"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    task, started = bars.add_task("", total=None), time.monotonic()

    def watch(done: int, files: int) -> None:
        bars.update(task, completed=done, total=files)
        if time.monotonic() - started > PATIENCE:
            bars.start()

    try:
        yield watch
    finally:
        if bars.live.is_started:
            bars.stop()


class TimeLeft(TextColumn):
    """The time left, as the training itself estimates it."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        """The time in minutes and seconds, or that the number of steps is not known yet."""
        seconds = task.fields.get("left")
        return Text("planning" if seconds is None else f"{int(seconds // 60)}:{int(seconds % 60):02d} left")


class TrainingBar:
    """Shows loss, both accuracies, speed and time left, and prints a line for every evaluation.

    Args:
        console: where to show them.
        describe_plan: the words for a plan, printed when it is made and when it is shortened.
        kind: what is trained on, image or shape.
    """

    def __init__(
        self, console: Console, describe_plan: Callable[[Plan], str] | None = None, *, kind: str = "image"
    ) -> None:
        self._console, self._describe_plan, self._kind = console, describe_plan, kind
        self._steps: int | None = None
        self._bars = Bars(
            BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[figures]}"), TimeElapsedColumn(), TimeLeft(),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bars.add_task("training", total=None, figures="", left=None)
        self._shown = (0.0, 0.0, 0.0)
        self._started = False

    def __enter__(self) -> "TrainingBar":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def __call__(self, progress: Progress) -> None:
        """Show where the training stands after a step."""
        now = progress.figures
        figures = (now.loss, now.accuracy, now.agreement_accuracy)
        share = 0.05 if self._started else 1.0  # the figures of single batches jump; a running mean is easier to read
        self._shown = tuple(old + share * (new - old) for old, new in zip(self._shown, figures, strict=True))  # type: ignore[assignment] # still three
        self._started = True
        loss, accuracy, agreements = self._shown
        text = f"loss {loss:.3f}  accuracy {accuracy:.1f} %  agreements {agreements:.1f} %  "
        text += f"{progress.images_per_second:.0f} {self._kind}s/s"
        self._bars.update(
            self._task, completed=progress.step, total=progress.steps, figures=text, left=progress.seconds_left
        )
        self._tell_plan(progress)
        if progress.evaluation is not None:
            self._print(describe(progress.evaluation, kind=self._kind))

    def _tell_plan(self, progress: Progress) -> None:
        """Say once what was planned, and once that it was shortened."""
        before, self._steps = self._steps, progress.steps
        if before is None and progress.plan is not None and self._describe_plan is not None:
            self._print(self._describe_plan(progress.plan))
        if before is not None and progress.steps is not None and progress.steps < before:
            self._print(
                f"the validation {self._kind}s have stopped improving: the training ends after "
                f"{progress.steps:,} steps instead of {before:,}"
            )

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, soft_wrap=True)


def describe(row: Mapping[str, int | float], *, kind: str = "image") -> str:
    """The figures of an evaluation in one line."""
    line = f"{row['images_seen']:>9,} {kind}s  {row['cpu_minutes']:6.2f} CPU-min  accuracy {row['accuracy']:6.2f} %  "
    if "balanced_accuracy" in row:
        line += f"mean of the classes {row['balanced_accuracy']:6.2f} %  "
    line += f"agreements {row['agreement_accuracy']:6.2f} %"
    if "pose_error_mean" in row:
        line += f"  pose error {row['pose_error_mean']:5.2f} / {row['pose_error_median']:4.2f}°"
    if row.get("pose_undefined", 0) > LEAST_UNDEFINED:
        line += f" ({row['pose_undefined']:.0f} % undefined)"
    if "angle_error_mean" in row:
        line += f"  error of known angles {row['angle_error_mean']:5.2f} / {row['angle_error_median']:4.2f}°"
    counts = (int(row.get(f"images_{which}", 0)) for which in ("modulo_period", "of_round_classes"))
    return f"{line}  on {row['images']:,} {kind}s{describe_symmetric(*counts)}"


def describe_symmetric(modulo_period: int, of_round_classes: int) -> str:
    """How many images of symmetric classes the pose error of an evaluation or an audit counts in another way."""
    parts = {
        "modulo the period of their class": modulo_period,
        "left out, because their class is round": of_round_classes,
    }
    found = [f"{count:,} {how}" for how, count in parts.items() if count]
    return f" (pose error: {', '.join(found)})" if found else ""
