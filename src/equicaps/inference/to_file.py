"""Answers for any number of images or shapes, in one file.

While it is made, the finished parts of ``answers.csv`` are in a folder beside it, ``answers.csv.parts``. At the end
they become the file, in one step, and the folder is removed.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from equicaps import __version__
from equicaps._files import lock_folder
from equicaps.inference.model import WORKERS, PoseModel
from equicaps.inference.parts import Parts, Settings
from equicaps.inference.point_model import PointModel
from equicaps.inference.point_rows import as_point_row, point_columns
from equicaps.inference.rows import Row, as_row, check_format, columns, write_rows


@runtime_checkable
class Engine(Protocol):
    """Makes a row of each file, in order; :data:`BATCH` files are computed at once, from the first one on."""

    def __call__(self, model: Any, files: Iterable[str], /) -> Iterator[Row]:
        """The rows; an engine need not take both kinds of models."""


class Outcome(NamedTuple):
    """What is in the file."""

    files: int
    """The number of images or shapes."""
    failed: int
    """The number of files that could not be read."""
    inverted: int
    """The number of images that were inverted for the model."""
    found: int
    """The number of files that an earlier run had finished."""


def on_this_machine(model: PoseModel | PointModel, files: Iterable[str], *, workers: int = WORKERS) -> Iterator[Row]:
    """The engine that computes in this process, with threads that decode images."""
    names, sources = itertools.tee(files)
    if isinstance(model, PointModel):
        found = zip(names, model.predict_files(sources), strict=True)
        return (as_point_row(name, answer, model.classes) for name, (_, answer) in found)
    answers = model.predict_sources(sources, workers=workers)
    return (as_row(name, answer, model.classes) for name, answer in zip(names, answers, strict=True))


def predict_to_file(
    model: PoseModel | PointModel,
    files: Iterable[str],
    out: Path,
    *,
    force: bool = False,
    engine: Engine = on_this_machine,
    watch: Callable[[int, int], None] = lambda done, files: None,
) -> Outcome:
    """Write the answers for images or shapes into a file, or continue a run that did not come to its end.

    Args:
        model: the model.
        files: the paths of images or shapes, or addresses of images; they are listed before the first one is read.
        out: the file; it ends in .csv, .jsonl or .parquet.
        force: whether to discard the parts of a run with another model, other settings or other files.
        engine: what computes.
        watch: is told how many files are finished, and how many there are.
    """
    check_format(out)
    name = f"{model.card.name} ({model.fingerprint()})"
    settings: Settings = {"equicaps": __version__, "model": name}
    parts = Parts(out.with_name(f"{out.name}.parts"))
    with lock_folder(parts.folder, wait=False):
        try:
            total = parts.start(files, settings, force=force)
            found = parts.done
            watch(found, total)
            rows = engine(model, parts.remaining()) if found < total else ()
            for number, row in enumerate(rows, found + 1):
                parts.add(row)
                watch(number, total)
            parts.finish()
            tally = Tally()
            named = point_columns if isinstance(model, PointModel) else columns
            write_rows(out, named(model.classes), tally.counted(parts.rows(total)))
            parts.clear()
        finally:
            parts.remove_if_empty()
    return Outcome(total, tally.failed, tally.inverted, found)


class Tally:
    """Counts rows as they pass by."""

    failed = inverted = 0

    def counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows."""
        for row in rows:
            self.failed += row["error"] is not None
            self.inverted += row.get("inverted") is True
            yield row
