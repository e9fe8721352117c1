"""What a training writes down: CSV and TensorBoard logs while it runs, a JSON file with the result at its end."""

import csv
import io
import logging
import platform
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from equicaps import __version__
from equicaps._checks import printable
from equicaps._files import check_regular, explain, rename, write_bytes, write_json
from equicaps.errors import FileError
from equicaps.training.config import Number

_log = logging.getLogger(__name__)
STEPS, EVALUATIONS, RESULT = "steps.csv", "evaluations.csv", "result.json"


class RunLog:
    """All logs of one training."""

    def __init__(self, folder: Path, step: int, *, tensorboard: bool = False) -> None:
        self._steps, self._evaluations = CsvLog(folder / STEPS, step), CsvLog(folder / EVALUATIONS, step)
        self._board = TensorBoardLog(folder, step) if tensorboard else None

    def add_step(self, row: Mapping[str, Number]) -> None:
        """Log the figures of some training steps."""
        self._steps.add(row)
        if self._board:
            self._board.add("training", row)

    def add_evaluation(self, row: Mapping[str, Number]) -> None:
        """Log the figures of an evaluation."""
        self._evaluations.add(row)
        if self._board:
            self._board.add("evaluation", row)

    def close(self) -> None:
        """Write out what is still in memory."""
        if self._board:
            self._board.close()


class CsvLog:
    """Rows of figures, written immediately; a resumed training drops the rows after its checkpoint.

    Args:
        path: the CSV file.
        step: the last step whose rows are kept.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        check_regular(path)
        kept = _rows_until(step, path) if step and path.exists() else []
        self._write(list(kept[0]) if kept else [], kept)

    def add(self, row: Mapping[str, Number]) -> None:
        """Append a row; if it has a figure that no row had before, all rows get a column for it."""
        new = [name for name in row if name not in self._names]
        if new or not self.path.exists():
            before = _rows_until(int(row["step"]), self.path) if self.path.exists() else []
            self._write([*self._names, *new], before)
        try:
            with open(self.path, "a", newline="") as file:
                file.write(_line(row.get(name, "") for name in self._names))
        except OSError as error:
            raise FileError(explain(self.path, error)) from error

    def _write(self, names: list[str], rows: list[dict[str, str]]) -> None:
        """Begin the file anew with these columns and rows."""
        self._names = names
        lines = [names, *([row.get(name, "") for name in names] for row in rows)] if names else []
        write_bytes(self.path, "".join(map(_line, lines)).encode())


def _rows_until(step: int, path: Path) -> list[dict[str, str]]:
    """The rows of a log up to a step. Nothing depends on them, so a damaged log is set aside, and a new one begun."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            # The last line may be incomplete: the process may have been killed while writing it.
            rows = [row for row in csv.DictReader(file) if None not in row.values() and None not in row]
        return [row for row in rows if int(row["step"]) <= step]
    except (ValueError, KeyError, csv.Error) as error:
        aside = path.with_name(f"damaged-{path.name}")
        said = printable(f"{path} is damaged ({error}): it is now {aside.name}, and a new one is begun.")
        _log.warning("%s", said)
        rename(path, aside)
        return []
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}.") from error


class TensorBoardLog:
    """The same figures for TensorBoard; needs the package tensorboard (``pip install equicaps[train]``)."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def add(self, prefix: str, row: Mapping[str, Number]) -> None:
        """Add a point to the curve of each figure."""
        for name, value in row.items():
            if name != "step":
                self._writer.add_scalar(f"{prefix}/{name}", value, int(row["step"]))

    def close(self) -> None:
        """Write out what is still in memory."""
        self._writer.close()


def write_result(folder: Path, content: Mapping[str, Any]) -> None:
    """Write ``result.json``: the settings, the figures, and the code that produced them."""
    write_json(folder / RESULT, {**content, **provenance()})


def provenance() -> dict[str, Any]:
    """The versions of the code, and the kind of machine it runs on."""
    return {
        "equicaps": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def commit() -> str | None:
    """The commit of the checkout that this package runs from; None if it is installed.

    ``+changes`` is appended if files other than results differ from that commit.
    """

    def git(*words: str) -> str:
        found = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=True)
        return found.stdout.strip()

    here = Path(__file__).parent
    try:
        if not git("ls-files", Path(__file__).name):
            return None
        changed = git("status", "--porcelain", "-uno", "--", ":(top)", ":(top,exclude)results")
        return git("rev-parse", "--short", "HEAD") + ("+changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _line(values: Iterable[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
