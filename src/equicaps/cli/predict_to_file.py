"""``equicaps predict --out``: the answers for any number of images or shapes, in a file."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.text import Text

from equicaps._checks import printable
from equicaps.cli.reporting import FAILED, note_inverted, reported, say
from equicaps.cli.terminal import new_file, resolved, show_json
from equicaps.data.shapes_by_name import iterate_shapes
from equicaps.errors import UsageError
from equicaps.images.decode import is_remote, iterate_images
from equicaps.inference import PointModel, PoseModel
from equicaps.inference.model import WORKERS
from equicaps.inference.rows import check_format
from equicaps.inference.to_file import Engine, on_this_machine, predict_to_file


@dataclass(frozen=True)
class Request:
    """What the options ask for; it is refused if it cannot be carried out."""

    images: list[str]
    out: Path
    workers: int | None
    engine: Literal["local", "ray"]
    address: str | None
    force: bool

    def __post_init__(self) -> None:
        if self.address is not None and self.engine != "ray":
            raise UsageError("--address is the address of a Ray cluster: add --engine ray.")
        check_format(self.out)
        new_file(self.out, force=self.force, inputs=resolved(self.paths))

    @property
    def paths(self) -> list[Path]:
        """The images or shapes that are files or folders."""
        return [Path(image) for image in self.images if not is_remote(image)]

    def names(self, model: PoseModel | PointModel) -> Iterator[str]:
        """Every image or shape, whichever the model takes, one by one."""
        yield from map(str, (iterate_shapes if isinstance(model, PointModel) else iterate_images)(self.paths))
        for address in filter(is_remote, self.images):
            from equicaps.images.remote import remote_images  # pyarrow is optional

            yield from remote_images(address)

    def chosen_engine(self) -> Engine:
        """What computes."""
        if self.engine == "local":
            return functools.partial(on_this_machine, workers=self.workers or WORKERS)
        from equicaps.inference.ray import check_ray, on_ray  # so is Ray

        check_ray(self.address)
        return functools.partial(on_ray, workers=self.workers, address=self.address)


class PerSecond(ProgressColumn):
    """The speed of the last half minute, in images or shapes."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def render(self, task: Task) -> Text:
        """The speed, as soon as it is known."""
        return Text(f"{task.speed:,.0f} {self.kind}/s" if task.speed else "")


def write_answers(console: Console, model: PoseModel | PointModel, request: Request, as_json: bool) -> None:
    """Write the file behind a progress bar, and say what is in it."""
    kind = "shapes" if isinstance(model, PointModel) else "images"
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), PerSecond(kind), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with reported(console), bar:
        task = bar.add_task("", total=None)
        try:
            outcome = predict_to_file(
                model, request.names(model), request.out, force=request.force,
                engine=request.chosen_engine(),
                watch=lambda done, files: bar.update(task, completed=done, total=files),
            )  # fmt: skip
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt("interrupted; run the same command again to continue.") from error
    files, failed, inverted, found = outcome
    if as_json:
        show_json({"model": model.card.name, "convention": model.card.convention, "file": str(request.out),
                   kind: files, "failed": failed})  # fmt: skip
    else:
        earlier = f", {found:,} of them found by an earlier run" if found else ""
        typer.echo(printable(f"{request.out}: answers for {files:,} {kind}{earlier}"))
    if isinstance(model, PoseModel):
        note_inverted(console, model, inverted, files - failed)
    if failed:
        say(console, f"error: {failed:,} of {files:,} {kind} could not be read; the column 'error' says why.")
        raise typer.Exit(FAILED)
