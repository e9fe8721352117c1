"""``equicaps reproduce``: the paper's tables and figures."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Annotated, TypeVar

import torch
import typer
from rich.console import Console
from rich.progress import track

from equicaps.cli.progress import TrainingBar
from equicaps.cli.reporting import reported, settings_reported
from equicaps.cli.terminal import AsJson, show_json
from equicaps.errors import UsageError
from equicaps.training import Progress
from reproduction import pages
from reproduction.exactness import exactness
from reproduction.protocols import mnist
from reproduction.session import Record, Session
from reproduction.table1a import table1a
from reproduction.table1b import table1b
from reproduction.trainings import RUNS_FOLDER

T = TypeVar("T")


class What(StrEnum):
    """What can be reproduced."""

    TABLE1A = "table1a"
    TABLE1B = "table1b"
    EXACTNESS = "exactness"
    FIGURES = "figures"
    ALL = "all"


def reproduce(
    what: Annotated[What, typer.Argument(help="A table, the exactness of Section 6.2, the figures, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="A few steps on the package's digits: does it run?")] = False,
    results: Annotated[
        Path | None, typer.Option(help="Folder of the records.  [default: results; with --quick results/quick]")
    ] = None,
    no_training: Annotated[
        bool, typer.Option("--no-training", help="Use finished trainings only; the rest stays 'not yet run'.")
    ] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Train what is missing (hours; Ctrl-C saves, the same command continues), measure, draw and write the pages.

    The pages are those of a checkout: docs/results.md, and the tables of README.md and docs/guarantees.md. Elsewhere
    there are records and pictures alone.

    `equicaps reproduce all --quick` shows in minutes that everything runs.

    `equicaps reproduce table1a --no-training --json`
    """
    console = Console(stderr=True)
    folder = results or (Path("results", "quick") if quick else Path("results"))
    checkout = folder.resolve().parent
    publish = not quick and folder.resolve().name == "results" and pages.is_checkout(checkout)
    with settings_reported(console):
        if not quick:
            mnist("train"), mnist("test")
        plots = _plots()
    torch.set_num_threads(1)
    session = Session(folder, quick, not no_training, Bars(console, folder))
    pictures = checkout / "docs" / "figures" if publish else folder / "figures"
    records: dict[str, Record | None] = {}
    with reported(console):
        if what in (What.EXACTNESS, What.ALL):
            records["exactness"] = found = exactness(session)
            plots.accuracy_by_angle(pictures / "accuracy_by_angle.png", found)
        if what in (What.TABLE1A, What.ALL):
            records["table1a"] = table1a(session)
        if what in (What.TABLE1B, What.ALL):
            records["table1b"] = found = table1b(session)
            plots.pose_error_by_class(pictures / "pose_error_by_class.png", found)
        if what in (What.FIGURES, What.ALL):
            from reproduction.figures import figures

            records["figures"] = figures(session, pictures)
        written = pages.update(checkout, folder.resolve()) if publish else []
    for path in written:
        console.print(f"written: {path}", markup=False, soft_wrap=True)
    if as_json:
        show_json({"quick": quick, "results": str(folder), "pictures": str(pictures),
                   "written": list(map(str, written)), "records": records})  # fmt: skip
    label = "quick, not for any table: " if quick else ""
    console.print(f"{label}{folder}, pictures in {pictures}", markup=False, soft_wrap=True)


class Bars:
    """Progress on the console."""

    def __init__(self, console: Console, results: Path) -> None:
        self._console, self._results = console, results

    @contextlib.contextmanager
    def training(self, name: str) -> Iterator[Callable[[Progress], None] | None]:
        """A bar while a network is trained; nothing if it is already there."""
        if (self._results / RUNS_FOLDER / f"{name}.json").exists():
            yield None
            return
        self._console.print(f"training {name}", markup=False)
        with TrainingBar(self._console) as bar:
            yield bar

    def each(self, items: Sequence[T], what: str) -> Iterator[T]:
        """A bar for a measurement."""
        yield from track(items, what, console=self._console, transient=True, disable=not self._console.is_terminal)


def _plots() -> ModuleType:
    try:
        from reproduction import plots
    except ImportError as error:
        raise UsageError(str(error)) from error
    return plots
