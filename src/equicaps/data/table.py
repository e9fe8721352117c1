"""A list of labelled images: a CSV file with the columns ``file`` and ``label``."""

from pathlib import Path
from typing import NamedTuple

from equicaps._checks import is_printable
from equicaps.data.angles import ANGLE
from equicaps.data.csv_rows import read_rows
from equicaps.errors import UsageError

COLUMNS = ("file", "label")


class Table(NamedTuple):
    """The image files of every class, sorted, and remarks on the rest of the table."""

    files: dict[str, list[Path]]
    remarks: list[str]
    has_angles: bool = False
    """Whether there is a column of angles."""


def read_table(path: Path) -> Table:
    """Read the rows ``file,label`` of a CSV file whose first row names the columns; other columns are ignored.

    Files are relative to the folder of the table, or absolute. The column ``angle``, if there is one, is read by
    :func:`equicaps.data.angles.read_angles`.

    Raises:
        UsageError: something is wrong with the table; the message names the row.
    """
    rows, names = read_rows(path, COLUMNS)
    classes: dict[Path, str] = {}
    for number, row in enumerate(rows, 2):
        where, label = f"{path}, row {number}", (row["label"] or "").strip()
        if not row["file"] or not label:
            raise UsageError(f"{where}: every row needs a file and a label.")
        if not is_printable(label):
            raise UsageError(f"{where}: the label {label!r} has characters that cannot be printed; rename it.")
        image = path.parent / row["file"]
        if not image.is_file():
            raise UsageError(f"{where}: {image} is not a file; paths are relative to the folder of the list.")
        if classes.setdefault(image, label) != label:
            raise UsageError(f"{where}: {row['file']} is labelled {label!r}, but {classes[image]!r} in a row above.")
    labels = sorted(set(classes.values()))
    if len(labels) < 2:
        raise UsageError(f"{path}: at least two classes are needed; found only {labels[0]!r}.")
    files = {name: sorted(file for file, label in classes.items() if label == name) for name in labels}
    others = [name for name in names if name not in (*COLUMNS, ANGLE)]
    remarks = [f"columns ignored: {', '.join(map(repr, others))}"] if others else []
    if repeated := len(rows) - len(classes):
        remarks.append(f"{repeated} repeated rows left out")
    return Table(files, remarks, ANGLE in names)
