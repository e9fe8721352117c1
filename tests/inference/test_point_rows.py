import math

from small_shapes import SOLIDS, point_model

from equicaps.errors import FileError
from equicaps.inference.point_rows import as_point_row, point_columns
from equicaps.inference.rows import write_rows


def test_a_row_has_the_columns_of_its_table_and_the_values_of_its_answer(tmp_path):
    model = point_model()
    answer = next(iter(model.predict(SOLIDS.surfaces[:1])))
    row, failed = (as_point_row("a.ply", found, model.classes) for found in (answer, FileError("it is gone")))
    assert list(row) == list(failed) == list(point_columns(model.classes))
    assert row["label"] == answer.label
    assert math.hypot(row["rotation_x"], row["rotation_y"], row["rotation_z"]) == row["angle"] == answer.angle
    assert row["score_chair"] == answer.scores["chair"]
    assert row["error"] is None
    assert failed["error"] == "it is gone"
    assert {name for name, value in failed.items() if value is not None} == {"file", "error"}
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        write_rows(tmp_path / name, point_columns(model.classes), [row, failed])
    header, first, second = (tmp_path / "a.csv").read_text().splitlines()
    assert header.split(",")[:3] == ["file", "label", "confidence"]
    assert first.startswith(f"a.ply,{answer.label},")
    assert "it is gone" in second
