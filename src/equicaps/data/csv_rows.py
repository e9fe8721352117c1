"""The rows of a CSV file whose first row names the columns."""

import csv
from collections.abc import Sequence
from pathlib import Path

from equicaps.errors import NotFoundError, UsageError


def read_rows(path: Path, needed: Sequence[str]) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of a CSV file in UTF-8, and the names of its columns.

    Args:
        path: the file.
        needed: the columns that must be there.

    Raises:
        UsageError: this is no such file, a column is missing, there are no rows, or one has too many fields.
    """
    if not path.is_file():
        raise NotFoundError(f"{path} is not a file; expected a CSV file with the columns {_quoted(needed)}.")
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            rows, names = list(reader), list(reader.fieldnames or ())
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not a CSV file in UTF-8: {error}.") from error
    if missing := [name for name in needed if name not in names]:
        found = ", ".join(repr(name) for name in names) or "none"
        raise UsageError(
            f"{path}: the first row must name the columns {_quoted(needed)}, and others must follow; "
            f"{_quoted(missing)} not found, only {found}."
        )
    if not rows:
        raise UsageError(f"{path} has no rows below the first, which names the columns; expected one for each file.")
    for number, row in enumerate(rows, 2):
        if None in row:  # where DictReader collects what has no column
            raise UsageError(
                f"{path}, row {number}: every row must have {len(names)} fields, as the first, but this one has "
                f"{len(names) + len(row[None])}; put a field that contains a comma in double quotes."
            )
    return rows, names


def _quoted(names: Sequence[str]) -> str:
    return " and ".join(map(repr, names))
