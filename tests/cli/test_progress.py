"""Bars and lines that say what they count."""

import io

import pytest
from rich.console import Console
from small_shapes import save_point_network, write_folder
from typer.testing import CliRunner

from equicaps.cli import progress
from equicaps.cli.main import app
from equicaps.errors import UsageError
from equicaps.training import Progress
from equicaps.training.trainer import StepFigures

ROW = {"images_seen": 80, "cpu_minutes": 0.1, "accuracy": 50.0, "agreement_accuracy": 40.0, "images": 7}


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", -1.0)


@pytest.mark.parametrize("kind", ["image", "shape"])
def test_a_training_counts_what_it_trains_on(kind):
    other = {"image": "shape", "shape": "image"}[kind]
    console = Console(file=io.StringIO(), force_terminal=True, width=200)
    figures = StepFigures(**dict.fromkeys(StepFigures._fields, 0.5))
    with progress.TrainingBar(console, kind=kind) as bar:
        bar(Progress(1, 9, figures, 20.0, 1.0, evaluation=ROW))
        bar(Progress(2, 5, figures, 20.0, 1.0))
    shown = console.file.getvalue()
    for words in (f"20 {kind}s/s", f"80 {kind}s ", f"on 7 {kind}s", f"validation {kind}s have stopped improving"):
        assert words in shown
    assert other not in shown


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("command", "work"),
    [("audit", "audit_shapes.audit_points"), ("export", "export.export_points"), ("train", "train.run")],
)
def test_shapes_that_are_read_are_not_called_images(tmp_path, monkeypatch, command, work):
    def stop(*given, **options):
        raise UsageError("enough was read")

    monkeypatch.setattr(f"equicaps.cli.{work}", stop)
    folder = str(write_folder(tmp_path / "solids", count=15))
    model = str(save_point_network(tmp_path / "solids.safetensors"))
    words = (
        ["train", folder, "--out", str(tmp_path / "run")] if command == "train" else [command, model, "--data", folder]
    )
    result = CliRunner().invoke(app, words, env={"FORCE_COLOR": "1", "COLUMNS": "120"})
    assert "enough was read" in result.stderr, result.output
    assert "reading shapes" in result.stderr
    assert "images" not in result.stderr


@pytest.mark.usefixtures("impatient")
def test_images_are_called_images():
    console = Console(file=io.StringIO(), force_terminal=True)
    with progress.reading_bar(console) as watch:
        watch(1, 2)
    assert "reading images" in console.file.getvalue()


def test_a_line_says_how_errors_of_symmetric_classes_were_counted():
    errors = {"pose_error_mean": 90.0, "pose_error_median": 90.0, "pose_undefined": 49.6}
    assert "pose error 90.00 / 90.00° (50 % undefined)  on 7 images" in progress.describe(ROW | errors)
    assert "(1 % undefined)" in progress.describe(ROW | errors | {"pose_undefined": 0.51})
    assert "undefined" not in progress.describe(ROW | errors | {"pose_undefined": 0.5})  # it would round to 0
    found = progress.describe(ROW | errors | {"pose_undefined": 0.4, "images_modulo_period": 4})
    assert "90.00°  on 7 images (pose error: 4 modulo the period of their class)" in found
    found = progress.describe(ROW | {"images_modulo_period": 4, "images_of_round_classes": 2})
    assert found.endswith("(pose error: 4 modulo the period of their class, 2 left out, because their class is round)")
    assert progress.describe(ROW | {"images_modulo_period": 0}).endswith("on 7 images")
