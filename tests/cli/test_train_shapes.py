"""``equicaps train`` on shapes, and what can be done with the result."""

import json

import pytest
from commands import failed_cleanly
from small_shapes import write_folder

import equicaps
from equicaps.inference import PointModel
from equicaps.inference.export import Comparison

QUICK = ("--batch", 4)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data") / "solids", count=15)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A folder after two steps, and what was printed."""
    from typer.testing import CliRunner

    from equicaps.cli.main import app

    out = tmp_path_factory.mktemp("runs") / "solids"
    words = ["train", str(data), "--steps", "2", "--batch", "4", "--seed", "3", "--out", str(out), "--json"]
    return out, CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def test_a_folder_of_shapes_is_trained_on(trained):
    out, result = trained
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["config"]["model"] == {"preset": "points", "num_classes": 5}
    assert (found["config"]["seed"], found["config"]["batch"], found["config"]["optimiser"]["clip"]) == (3, 4, 1.0)
    assert found["config"]["objective"]["upright"]
    assert "points: " in result.stderr
    assert "each training shape will be seen about" in result.stderr
    assert "test shapes by true class" in result.stderr
    model = equicaps.load(out)
    assert isinstance(model, PointModel)
    assert model.card.name == "solids"
    assert model.card.points == 1024


def test_a_training_is_continued_only_on_what_it_was_started_with(run, trained, data, folder):
    out, _ = trained
    again = ("train", data, "--out", out, *QUICK)
    assert failed_cleanly(run(*again), 2, "already contains a training")
    result = run(*again, "--resume", "--seed", 3, "--steps", 2)
    assert result.exit_code == 0, result.output  # it is finished already
    assert failed_cleanly(run("train", "digits", "--out", out, "--resume"), 2, "contains a training on shapes, but")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--size", 32], "--size cannot be used with shapes"),
        (["--mirror", "ignore", "--upright", "--balance"], "--mirror and --upright and --balance cannot be used"),
        (["--angles", "a.csv"], "--angles cannot be used with shapes"),
        (["--reconstruction", 0.1], "--reconstruction cannot be used with shapes"),
        (["--preset", "steerable"], "there are the presets points, points-paper, but not 'steerable'"),
    ],
)
def test_options_for_images_are_refused(run, data, tmp_path, options, message):
    assert failed_cleanly(run("train", data, "--out", tmp_path / "run", "--steps", 1, *options), 2, message)


def test_shapes_that_stand_in_any_way_are_not_compared_with_each_other(run, data, tmp_path):
    result = run("train", data, "--out", tmp_path / "run", "--steps", 1, *QUICK, "--any-orientation", "--json")
    assert result.exit_code == 0, result.output
    assert not json.loads(result.stdout)["config"]["objective"]["upright"]


@pytest.mark.parametrize("option", [("--preset", "points"), ("--any-orientation",)])
def test_what_is_for_shapes_is_refused_for_images(run, tmp_path, option):
    words = ("train", "digits", *option, "--out", tmp_path / "run")
    assert failed_cleanly(run(*words), 2, " is for shapes, but digits holds none")


@pytest.mark.parametrize("option", [("--preset", "points"), ("--any-orientation",)])
def test_a_folder_that_does_not_exist_is_named(run, tmp_path, option):
    result = run("train", tmp_path / "shaeps", *option, "--out", tmp_path / "run")
    assert failed_cleanly(result, 2, "shaeps does not exist; expected a folder of shapes")


def test_the_card_of_a_model_of_shapes_is_shown(run, trained):
    out, _ = trained
    shown = " ".join(run("info", out).stdout.split())
    for words in ("shapes of which 1,024 points are drawn", "block, chair, cup", "A mirror image is another shape"):
        assert words in shown
    card = json.loads(run("info", out, "--json").stdout)
    assert set(card["network"]) == {"preset", "parameters", "points"}
    assert len(card["uprights"]) == 5


def test_an_export_is_compared_and_written(run, trained, data, tmp_path, monkeypatch):
    """The exporter itself is tested elsewhere: here it has agreed, and then has not."""
    out, _ = trained
    asked = []

    def exported(model, to, shapes, *, off=0.0):
        asked.append((to, len(shapes), shapes.name))
        return b"program", Comparison(len(shapes), 0, off, 0.0, 0.0, 0.0, (0.0, 0.0))

    monkeypatch.setattr("equicaps.cli.export.export_points", exported)
    result = run("export", out, "--out", tmp_path / "a.onnx")
    assert result.exit_code == 0, result.output
    assert "any batch size, 257 points or more" in result.stdout
    assert "these shapes are not of the model's classes" not in result.stdout  # solids happen to be
    assert (tmp_path / "a.onnx").read_bytes() == b"program"
    run("export", out, "--to", "torch", "--out", tmp_path / "a.pt2", "--data", data, "--images", 3)
    named = run("export", out, "--out", tmp_path / "b.onnx", "--data", "digits")  # not the same as naming none
    assert failed_cleanly(named, 2, "'digits' is neither a data set of shapes")
    assert [entry[:2] for entry in asked] == [("onnx", 50), ("torch", 3)]
    monkeypatch.setattr("equicaps.cli.export.export_points", lambda *given: exported(*given, off=1.0))
    assert failed_cleanly(run("export", out, "--out", tmp_path / "b.onnx"), 1, "differs from the network")
    assert not (tmp_path / "b.onnx").exists()
