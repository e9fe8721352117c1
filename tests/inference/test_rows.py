"""A table of answers is the same in every format."""

import csv
import json
import sys

import pytest

from equicaps.errors import MissingPackageError, UsageError
from equicaps.inference import Answer
from equicaps.inference.rows import FORMATS, as_row, check_format, columns, write_rows

CLASSES = ("a", 'b, "c"', "ü")
ANSWER = Answer(
    label="ü", confidence=0.1 + 0.2, angle=-12.5, agreed_label="a", agreement=1e-300,
    scores=dict(zip(CLASSES, (1.0, -2.0, float("nan")), strict=True)), agreements=None, inverted=False,
)  # fmt: skip
WITHOUT_POSE = Answer("a", 1.0, None, None, None, dict.fromkeys(CLASSES, 0.0), None)
ROWS = [
    as_row("plain.png", ANSWER, CLASSES),
    as_row("with, \"quotes\"\nand lines.png", WITHOUT_POSE, CLASSES),
    as_row("undecodable \udcff.png", OSError("[Errno 2] no \udcff"), CLASSES),
]  # fmt: skip


def read(path):
    """The rows of a file, with the types that the format has."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    kinds = {str: str, float: float, bool: lambda text: {"true": True, "false": False}[text]}
    with path.open(encoding="utf-8", newline="") as file:
        return [
            {name: kinds[columns(CLASSES)[name]](value) if value else None for name, value in row.items()}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("suffix", FORMATS)
def test_what_is_written_is_read_again_to_the_last_bit(tmp_path, suffix):
    """Numbers, missing values, names with quotes and line breaks, and columns in order."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'equicaps[parquet]'")
    path = tmp_path / f"answers{suffix}"
    write_rows(path, columns(CLASSES), ROWS)
    assert read(path) == ROWS
    assert all(list(row) == list(columns(CLASSES)) for row in read(path))


def test_a_row_says_what_the_answer_says():
    row = ROWS[0]
    assert (row["file"], row["label"], row["confidence"], row["angle"]) == ("plain.png", "ü", 0.1 + 0.2, -12.5)
    assert (row["agreed_label"], row["agreement"], row["inverted"]) == ("a", 1e-300, False)
    assert (row["score_a"], row['score_b, "c"'], row["score_ü"], row["error"]) == (1.0, -2.0, None, None)


def test_a_file_that_cannot_be_read_has_its_reason_and_nothing_else():
    assert {name: value for name, value in ROWS[2].items() if value is not None} == {
        "file": "undecodable \\udcff.png",
        "error": "[Errno 2] no \\udcff",
    }


@pytest.mark.parametrize("suffix", FORMATS)
def test_rows_that_fail_midway_leave_no_file(tmp_path, suffix):
    def failing():
        yield ROWS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(tmp_path / f"answers{suffix}", columns(CLASSES), failing())
    assert list(tmp_path.iterdir()) == []


def test_many_rows_make_several_groups_of_parquet(tmp_path, monkeypatch):
    pyarrow_parquet = pytest.importorskip("pyarrow.parquet", reason="pip install 'equicaps[parquet]'")
    monkeypatch.setattr("equicaps.inference.rows.ROWS_AT_ONCE", 2)
    write_rows(tmp_path / "answers.parquet", columns(CLASSES), iter(ROWS))
    assert pyarrow_parquet.ParquetFile(tmp_path / "answers.parquet").num_row_groups == 2
    assert read(tmp_path / "answers.parquet") == ROWS


def test_names_say_the_format_and_parquet_names_what_it_needs(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=r"answers\.xlsx must end in one of \.csv, \.jsonl, \.parquet"):
        check_format(tmp_path / "answers.xlsx")
    for module in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError, match=r"pip install 'equicaps\[parquet\]'.* \.csv or \.jsonl"):
        check_format(tmp_path / "answers.parquet")
    for suffix in (".csv", ".jsonl"):
        write_rows(tmp_path / f"answers{suffix}", columns(CLASSES), ROWS)  # need nothing
