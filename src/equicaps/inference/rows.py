"""Answers as the rows of a table, and files of them: CSV, JSON lines or Parquet."""

import csv
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from equicaps._files import written
from equicaps.errors import MissingPackageError, UsageError
from equicaps.inference.prediction import Answer, Failure

Row = dict[str, str | float | bool | None]
Columns = Mapping[str, type]

OF_ANSWERS: dict[str, type] = {
    "label": str, "confidence": float, "angle": float, "angle_error": float, "period": float, "agreed_label": str,
    "agreement": float, "inverted": bool,
}  # fmt: skip
"""The columns that have the name and the value of an attribute of :class:`Answer`."""
ROWS_AT_ONCE = 8192
"""How many rows are in memory while Parquet is written; it stores as many in a group."""


def columns(classes: Sequence[str]) -> dict[str, type]:
    """The columns of a table, which depend on the classes: each has a column with its score."""
    return {"file": str, **OF_ANSWERS, "error": str, **{f"score_{name}": float for name in classes}}


def as_row(file: str, answer: Answer | Failure, classes: Sequence[str]) -> Row:
    """What a model says about a file, or why there is no answer; everything else is None."""
    row: Row = dict.fromkeys(columns(classes))
    row["file"] = encodable(file)
    if isinstance(answer, Failure):
        row["error"] = encodable(str(answer))
        return row
    row |= {name: finite(getattr(answer, name)) for name in OF_ANSWERS}
    row |= {f"score_{name}": finite(score) for name, score in answer.scores.items()}
    return row


def check_format(path: Path) -> None:
    """Raise unless a table can be written into a file of this name."""
    if path.suffix not in FORMATS:
        raise UsageError(f"{path} must end in one of {', '.join(FORMATS)}, which says how answers are written.")
    if path.suffix == ".parquet":
        _pyarrow()


def write_rows(path: Path, columns: Columns, rows: Iterable[Row]) -> None:
    """Write a table completely or not at all, in the format that the name says; the rows may be any number."""
    with written(path) as file:
        FORMATS[path.suffix](file, columns, rows)


def as_line(row: Row) -> bytes:
    """A row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_lines(path: Path) -> Iterator[Row]:
    """The rows of a file of JSON lines."""
    with path.open("rb") as file:
        yield from map(json.loads, file)


def _write_json_lines(file: BinaryIO, columns: Columns, rows: Iterable[Row]) -> None:
    file.writelines(map(as_line, rows))


def _write_csv(file: BinaryIO, columns: Columns, rows: Iterable[Row]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()})
    text.detach()  # which writes what it holds, and leaves the file open


def _write_parquet(file: BinaryIO, columns: Columns, rows: Iterable[Row]) -> None:
    pyarrow, remaining = _pyarrow(), iter(rows)
    with pyarrow.parquet.ParquetWriter(file, schema(columns)) as table:
        while group := list(itertools.islice(remaining, ROWS_AT_ONCE)):
            table.write_table(pyarrow.Table.from_pylist(group, schema=schema(columns)))


FORMATS: dict[str, Callable[[BinaryIO, Columns, Iterable[Row]], None]] = {
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
}
"""What writes a file with this ending."""


def schema(columns: Columns) -> Any:
    """The columns for pyarrow."""
    pyarrow = _pyarrow()
    kinds = {str: pyarrow.string(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    return pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingPackageError(
            "Parquet needs pyarrow: pip install 'equicaps[parquet]'. Or write .csv or .jsonl, which need nothing."
        ) from error
    return pyarrow


def encodable(text: str) -> str:
    """A text that UTF-8 can hold; the undecodable bytes of a name become escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


def finite(value: Any) -> Any:
    """Numbers that are not finite count as missing: JSON has none."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
