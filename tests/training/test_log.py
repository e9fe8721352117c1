"""The logs of a training."""

from equicaps.training.log import CsvLog


def test_a_figure_that_comes_later_gets_a_column_in_all_rows(tmp_path):
    """The first evaluation may have no pose error; the rows before have an empty cell, also after a restart."""
    path = tmp_path / "evaluations.csv"
    log = CsvLog(path, 0)
    log.add({"step": 1, "accuracy": 10.0})
    log.add({"step": 2, "accuracy": 20.0, "pose_error": 3.5})
    log.add({"step": 3, "pose_error": 2.5})
    assert path.read_text() == "step,accuracy,pose_error\n1,10.0,\n2,20.0,3.5\n3,,2.5\n"
    resumed = CsvLog(path, 2)
    resumed.add({"step": 3, "accuracy": 30.0, "note": 1})
    assert path.read_text() == "step,accuracy,pose_error,note\n1,10.0,,\n2,20.0,3.5,\n3,30.0,,1\n"


def test_a_log_that_was_removed_is_begun_anew(tmp_path):
    path = tmp_path / "evaluations.csv"
    log = CsvLog(path, 0)
    log.add({"step": 1, "accuracy": 10.0})
    path.unlink()
    log.add({"step": 2, "accuracy": 20.0})
    log.add({"step": 3, "accuracy": 30.0, "pose_error": 3.5})
    assert path.read_text() == "step,accuracy,pose_error\n2,20.0,\n3,30.0,3.5\n"
