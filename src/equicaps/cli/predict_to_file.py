"""``equicaps predict --out``: the answers for any number of images, in a file."""

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
from equicaps.errors import UsageError
from equicaps.images.decode import is_remote, iterate_images
from equicaps.inference import PoseModel
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
        """The images that are files or folders."""
        return [Path(image) for image in self.images if not is_remote(image)]

    def names(self) -> Iterator[str]:
        """Every image, one by one."""
        yield from map(str, iterate_images(self.paths))
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


class ImagesPerSecond(ProgressColumn):
    """The speed of the last half minute."""

    def render(self, task: Task) -> Text:
        """The speed, as soon as it is known."""
        return Text(f"{task.speed:,.0f} images/s" if task.speed else "")


def write_answers(console: Console, model: PoseModel, request: Request, as_json: bool) -> None:
    """Write the file behind a progress bar, and say what is in it."""
    bar = Progress(
        BarColumn(), MofNCompleteColumn(), ImagesPerSecond(), TimeRemainingColumn(),
        console=console, transient=True, disable=not console.is_terminal,
    )  # fmt: skip
    with reported(console), bar:
        task = bar.add_task("", total=None)
        try:
            outcome = predict_to_file(
                model, request.names(), request.out, force=request.force,
                engine=request.chosen_engine(),
                watch=lambda done, images: bar.update(task, completed=done, total=images),
            )  # fmt: skip
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt("interrupted; run the same command again to continue.") from error
    images, failed, inverted, found = outcome
    if as_json:
        show_json({"model": model.card.name, "convention": model.card.convention, "file": str(request.out),
                   "images": images, "failed": failed})  # fmt: skip
    else:
        earlier = f", {found:,} of them found by an earlier run" if found else ""
        typer.echo(printable(f"{request.out}: answers for {images:,} images{earlier}"))
    note_inverted(console, model, inverted, images - failed)
    if failed:
        say(console, f"error: {failed:,} of {images:,} images could not be read; the column 'error' says why.")
        raise typer.Exit(FAILED)
