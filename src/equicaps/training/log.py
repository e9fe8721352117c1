"""What remains of a training: CSV and TensorBoard logs while it runs, a JSON of results at the end."""

import csv
import io
import json
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from equicaps import __version__
from equicaps._files import explain, write_bytes
from equicaps.errors import FileError
from equicaps.training.config import Number

STEPS, EVALUATIONS, RESULT = "steps.csv", "evaluations.csv", "result.json"


class CsvLog:
    """Rows of figures, each written at once; a resumed training drops the rows after its checkpoint.

    Args:
        path: of the file.
        step: keep the rows up to this step.
    """

    def __init__(self, path: Path, step: int) -> None:
        self.path = path
        kept = []
        if step and path.exists():
            with open(path, newline="") as file:
                # The last line may be half a line: the process may have been killed while writing it.
                kept = [row for row in csv.DictReader(file) if None not in row.values() and int(row["step"]) <= step]
        self._names = list(kept[0]) if kept else []
        write_bytes(
            path, "".join([_line(self._names) if kept else "", *(_line(row.values()) for row in kept)]).encode()
        )

    def add(self, row: Mapping[str, Number]) -> None:
        """One more row."""
        text = "" if self._names else _line(row)
        self._names = self._names or list(row)
        try:
            with open(self.path, "a", newline="") as file:
                file.write(text + _line(row.get(name, "") for name in self._names))
        except OSError as error:
            raise FileError(explain(self.path, error)) from error


class TensorBoardLog:
    """The same figures for TensorBoard; needs the package tensorboard (``pip install equicaps[train]``)."""

    def __init__(self, folder: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)

    def add(self, prefix: str, row: Mapping[str, Number]) -> None:
        """One point for each figure."""
        for name, value in row.items():
            if name != "step":
                self._writer.add_scalar(f"{prefix}/{name}", value, int(row["step"]))

    def close(self) -> None:
        """Write what is still in memory."""
        self._writer.close()


class RunLog:
    """All logs of one run."""

    def __init__(self, folder: Path, step: int, *, tensorboard: bool = False) -> None:
        self._steps, self._evaluations = CsvLog(folder / STEPS, step), CsvLog(folder / EVALUATIONS, step)
        self._board = TensorBoardLog(folder, step) if tensorboard else None

    def step(self, row: Mapping[str, Number]) -> None:
        """Figures of training."""
        self._steps.add(row)
        if self._board:
            self._board.add("training", row)

    def evaluation(self, row: Mapping[str, Number]) -> None:
        """Figures of an evaluation."""
        self._evaluations.add(row)
        if self._board:
            self._board.add("evaluation", row)

    def close(self) -> None:
        """Write what is still in memory."""
        if self._board:
            self._board.close()


def write_result(folder: Path, content: Mapping[str, Any]) -> None:
    """``result.json``: what was done, with what, and what came out."""
    write_bytes(folder / RESULT, (json.dumps({**content, **provenance()}, indent=1) + "\n").encode())


def provenance() -> dict[str, Any]:
    """Which code on which machine."""
    return {
        "equicaps": __version__,
        "commit": commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def commit() -> str | None:
    """Of the checkout that this package runs from, ``+changes`` if there are any but of results; None if installed."""

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


def _line(values: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue()
