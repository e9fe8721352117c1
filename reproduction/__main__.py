"""``python -m reproduction``: the commands."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console

from equicaps._files import write_bytes
from equicaps.cli.options import AsJson
from equicaps.cli.reporting import reported, settings_reported
from equicaps.cli.terminal import show_json
from equicaps.errors import NotFoundError, UsageError
from equicaps.inference.model_files import MODEL
from reproduction import galaxies, galaxies_page, pages, plots, points
from reproduction.exactness import exactness
from reproduction.figures import figures
from reproduction.paper import paper
from reproduction.results import ROOT, Record, Results
from reproduction.ship import MODELS, ship
from reproduction.table1a import table1a
from reproduction.table1b import table1b
from reproduction.trainings import TRAININGS

Experiment = Callable[[Results], Record | None]
Quick = Annotated[
    bool, typer.Option("--quick", help="Train a few steps on the package's digits, to see that everything runs.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--results", help="Folder of the results; by default results, or results/quick with --quick."),
]
NoTraining = Annotated[
    bool, typer.Option("--no-training", help="Use finished trainings only; what is missing is marked 'not yet run'.")
]

EXPERIMENTS: dict[str, tuple[Sequence[Experiment], str]] = {
    "table1a": ([table1a], "Table 1a: accuracy of the parts and of the whole network, on three data sets."),
    "table1b": ([table1b], "Table 1b and Figure 5: pose errors."),
    "exactness": ([exactness], "Section 6.2: accuracy at all angles, and what quarter turns change."),
    "figures": ([figures], "Figure 4: poses and reconstructions."),
    "paper": ([paper], "The paper's own network: all of its figures, printed as one table."),
    "all": ([exactness, table1a, table1b, figures, paper], "Everything above."),
}

app = typer.Typer(
    name="python -m reproduction",
    help="The paper's tables and figures: train what is missing (hours; Ctrl-C saves, and the same command continues), "
    "measure, draw, and write the pages of this checkout.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


def _add_command(name: str, experiments: Sequence[Experiment], text: str) -> None:
    @app.command(name, help=text)
    def command(
        quick: Quick = False, folder: Folder = None, no_training: NoTraining = False, as_json: AsJson = False
    ) -> None:
        console = _start()
        results = Results(folder or _default(quick), quick, not no_training, console)
        with reported(console):
            records = {experiment.__name__: experiment(results) for experiment in experiments}
            written = pages.update(ROOT) if results.published else []
        for path in written:
            console.print(f"written: {path}", markup=False, soft_wrap=True)
        if as_json:
            show_json({"quick": quick, "results": str(results.folder), "pictures": str(results.pictures),
                       "written": list(map(str, written)), "records": records})  # fmt: skip
        label = "quick run, whose figures mean nothing: " if quick else ""
        console.print(f"{label}{results.folder}, pictures in {results.pictures}", markup=False, soft_wrap=True)


for _name, (_experiments, _text) in EXPERIMENTS.items():
    _add_command(_name, _experiments, _text)


@app.command()
def train(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Trainings, one after the other.")
    ] = None,
    measure_again: Annotated[
        bool, typer.Option("--measure-again", help="Only measure finished trainings again, with the current code.")
    ] = False,
    folder: Folder = None,
) -> None:
    """Train by name, or list all trainings with their state.

    A training uses one core: start several commands for several cores.
    """
    console = _start()
    results = Results(folder or _default(quick=False), console=console)
    if not names:
        for name in TRAININGS:
            typer.echo(f"{results.state(name):<10} {name}")
        return
    with reported(console):
        _check_names(names, TRAININGS)
        for name in names:
            record = results.measure_again(name) if measure_again else results.training(name)
            typer.echo(f"{name}: {json.dumps(record and record['figures'])}")


@app.command()
def validate(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Trainings, one after the other.")],
    steps: Annotated[int | None, typer.Option(help="Train for so many steps.")] = None,
    rate: Annotated[float | None, typer.Option(help="The peak learning rate.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed.")] = None,
    shift: Annotated[float | None, typer.Option(help="Shift the views by up to so many pixels.")] = None,
    stretch: Annotated[
        float | None, typer.Option(help="Scale each axis of the views by up to so much, as 0.1 for a tenth.")
    ] = None,
    reconstruction: Annotated[float | None, typer.Option(help="The weight of the reconstruction loss.")] = None,
    folder: Folder = None,
) -> None:
    """Choose settings: train, and measure on validation images that are not trained on. No test image is read."""
    console = _start()
    results = Results(folder or _default(quick=False), console=console)
    given = {"steps": steps, "rate": rate, "seed": seed, "shift": shift, "stretch": stretch}
    given["reconstruction"] = reconstruction
    with settings_reported(console):
        _check_names(names, TRAININGS)
        for name in names:
            record = results.validate(name, {key: value for key, value in given.items() if value is not None})
            typer.echo(f"{name}: {json.dumps(record['figures'])}")


@app.command("galaxies")
def run_galaxies(
    data: Annotated[
        Path | None, typer.Option(help="Folder with first_galaxies.npz; by default found or fetched.")
    ] = None,
    folder: Folder = None,
    train: Annotated[bool, typer.Option("--train", help="Only train; the test split is not used.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Only write the page and its picture from the record.")] = False,
    commands: Annotated[bool, typer.Option("--commands", help="Only run the page's commands again.")] = False,
    png: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Only write three test sources of each class as images.")
    ] = None,
) -> None:
    """Radio galaxies: train networks, test them at all angles, compare poses with axes, and write docs/galaxies.md."""
    console = _start()
    results = Results(folder or _default(quick=False), console=console)
    with reported(console):
        if png:
            galaxies_page.write_images(png, galaxies.Training().data("test", data))
        elif commands:
            _run_galaxy_commands(results, data)
        elif train:
            galaxies.train_all(results, data)
        else:
            if not page:
                galaxies.train_all(results, data)
                galaxies.measure(results, data)
            _show_galaxies(results, data)


@app.command("points")
def run_points(
    data: Annotated[Path | None, typer.Option(help="Folder with modelnet10_vox30.npz; by default found.")] = None,
    folder: Folder = None,
    preset: Annotated[str, typer.Option(help="points or points-paper.")] = "points",
    steps: Annotated[int | None, typer.Option(help="Train for so many steps.")] = None,
    rate: Annotated[float | None, typer.Option(help="The peak learning rate.")] = None,
    batch: Annotated[int | None, typer.Option(help="Views in a step.")] = None,
    ship: Annotated[bool, typer.Option("--ship", help="Then write it as the model inside the package.")] = False,
) -> None:
    """Shapes in space: train on nine tenths of ModelNet10's training shapes, and measure on the others."""
    console = _start()
    results = Results(folder or _default(quick=False), console=console)
    given = {"preset": preset, "steps": steps, "rate": rate, "batch": batch}
    with reported(console):
        training = points.PointTraining(**{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type] # of its own kind each
        show_json(points.validate(results, training, data))
        if ship:
            console.print(f"written: {points.ship(results, training)}", markup=False, soft_wrap=True)
        for path in pages.update(ROOT) if results.published else []:
            console.print(f"written: {path}", markup=False, soft_wrap=True)


@app.command("ship")
def ship_models(
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Models; by default all.")] = None,
) -> None:
    """Measure finished trainings and write them, with their cards, as the models inside the package."""
    console = _start()
    with reported(console):
        _check_names(names or [], MODELS)
        for name in names or MODELS:
            ship(name, console)


@app.command("pages")
def write_pages(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a page is out of date.")] = False,
) -> None:
    """Write the pages that show results, from results/*.json and nothing else."""
    console = Console(stderr=True)
    with reported(console):
        if check and (old := pages.outdated(ROOT)):
            names = ", ".join(str(path.relative_to(ROOT)) for path in old)
            raise UsageError(f"out of date: {names}. Run python -m reproduction pages.")
        for path in [] if check else pages.update(ROOT):
            console.print(f"written: {path}", markup=False, soft_wrap=True)


def _start() -> Console:
    torch.set_num_threads(1)  # more threads are slower on a busy machine, and figures are given for one
    return Console(stderr=True)


def _default(quick: bool) -> Path:
    return ROOT / "results" / "quick" if quick else ROOT / "results"


def _check_names(names: Sequence[str], known: Iterable[str]) -> None:
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"unknown: {', '.join(unknown)}; choose from {', '.join(known)}.")


def _run_galaxy_commands(results: Results, data: Path | None) -> None:
    training, page = galaxies.Training(), ROOT / pages.GALAXIES
    if not (training.folder(results) / MODEL).exists():
        raise NotFoundError(f"{training.name} is not trained: run python -m reproduction galaxies --train first.")
    text = galaxies_page.run_commands(
        page.read_text(encoding="utf-8"), training.folder(results), training.data("test", data), data, results.console
    )
    write_bytes(page, text.encode())


def _show_galaxies(results: Results, data: Path | None) -> None:
    path = results.folder / f"{galaxies.NAME}.json"
    if not path.exists():
        raise NotFoundError(f"{path} does not exist: run python -m reproduction galaxies without --page first.")
    plots.galaxies(
        results.pictures / "galaxies.png", json.loads(path.read_text()), galaxies.Training().data("test", data)
    )
    if results.published:
        pages.update(ROOT)


if __name__ == "__main__":
    app(prog_name="python -m reproduction")
