"""``equicaps predict`` with a model of shapes, as a user sees it; and shapes where images are expected."""

import csv
import json

import numpy as np
import pytest
import torch
from commands import failed_cleanly
from PIL import Image
from small_shapes import SOLIDS, save_point_network, write_off
from typer.testing import CliRunner

from equicaps._files import lock_folder
from equicaps.cli.main import app
from equicaps.groups import SO3
from equicaps.inference import parts, point_model
from equicaps.inference.batches import BATCH

TURN = SO3().random(generator=torch.Generator().manual_seed(3)).reshape(3, 3)


@pytest.fixture(scope="session")
def shape_model(tmp_path_factory):
    return save_point_network(tmp_path_factory.mktemp("shapes") / "solids.safetensors")


@pytest.fixture
def shapes(tmp_path):
    """A chair, the same one rotated, and points."""
    chair = SOLIDS.surfaces[1].triangles
    write_off(tmp_path / "shapes" / "chair.off", chair)
    write_off(tmp_path / "shapes" / "turned.off", chair @ TURN.T)
    np.save(tmp_path / "shapes" / "points.npy", SOLIDS.surfaces[2].sample(200, torch.Generator()).numpy())
    return tmp_path / "shapes"


def test_a_rotated_shape_has_the_same_class_and_a_rotated_frame(run, shape_model, shapes, tmp_path):
    result = run("predict", shapes, "--model", shape_model, "--save", tmp_path / "pictures", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    chair, points, turned = found["shapes"]
    assert [entry["file"].rpartition("/")[2] for entry in found["shapes"]] == ["chair.off", "points.npy", "turned.off"]
    assert chair["label"] == turned["label"]
    np.testing.assert_allclose(turned["rotation"], TURN.numpy() @ chair["rotation"], atol=1e-3)
    assert np.abs(np.array(turned["rotation"]) - chair["rotation"]).max() > 0.1
    assert "every rotation of space" in found["convention"]
    with Image.open(points["saved"]) as picture:
        assert picture.width == 384
    shown = run("predict", shapes / "chair.off", "-m", shape_model).stdout
    assert "rotation" in shown
    assert f"{chair['angle']:.1f}° about (" in " ".join(shown.split())


def test_answers_go_into_a_table(run, shape_model, shapes, tmp_path):
    (shapes / "broken.ply").write_bytes(b"ply")
    words = ("predict", shapes, "-m", shape_model, "--out", tmp_path / "new" / "a.csv")
    assert failed_cleanly(run(*words), 1, "1 of 4 shapes could not be read; the column 'error' says why")
    rows = list(csv.DictReader((tmp_path / "new" / "a.csv").read_text().splitlines()))
    assert [bool(row["error"]) for row in rows] == [True, False, False, False]
    assert rows[1]["label"] == rows[3]["label"]
    assert failed_cleanly(run(*words), 2, "already exists")
    (shapes / "broken.ply").unlink()
    done = json.loads(run(*words, "--force", "--json").stdout)
    assert (done["shapes"], done["failed"]) == (3, 0)
    assert failed_cleanly(run(*words, "--force", "--engine", "ray"), 2, "--engine ray is for images")


@pytest.fixture
def clouds(tmp_path):
    """More than two batches of points, and one file among them that cannot be read."""
    folder, random = tmp_path / "clouds", np.random.default_rng(0)
    folder.mkdir()
    for number in range(2 * BATCH + 5):
        np.save(folder / f"{number:03}.npy", random.normal(size=(40, 3)))
    (folder / "003.npy").write_bytes(b"no points")
    return folder


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_an_interrupted_table_continues_to_the_same_bytes_and_reads_nothing_twice(
    run, shape_model, clouds, tmp_path, monkeypatch, suffix
):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install 'equicaps[parquet]'")
    expected, out = tmp_path / f"expected{suffix}", tmp_path / f"answers{suffix}"
    words, failure = ("predict", clouds, "-m", shape_model, "--out"), "1 of 69 shapes could not be read"
    assert failed_cleanly(run(*words, expected), 1, failure)
    seen, last = [], f"{2 * BATCH + 2:03}.npy"

    def read(path, points, real=point_model.read_clouds):
        if path.name == last:
            raise KeyboardInterrupt
        seen.append(path.name)
        return real(path, points)

    monkeypatch.setattr(parts, "PART_ROWS", BATCH)
    monkeypatch.setattr(point_model, "read_clouds", read)
    assert failed_cleanly(run(*words, out), 1, "interrupted; run the same command again to continue")
    assert not out.exists()
    assert seen == [f"{number:03}.npy" for number in range(2 * BATCH + 2)]
    seen.clear()
    last = None
    result = run(*words, out)
    assert failed_cleanly(result, 1, failure)
    assert result.stdout == f"{out}: answers for 69 shapes, 64 of them found by an earlier run\n"
    assert seen == [f"{number:03}.npy" for number in range(2 * BATCH, 2 * BATCH + 5)]
    assert out.read_bytes() == expected.read_bytes()
    assert not (tmp_path / f"answers{suffix}.parts").exists()


def test_two_runs_cannot_write_one_table(run, shape_model, shapes, tmp_path):
    with lock_folder(tmp_path / "a.csv.parts", wait=False):
        words = ("predict", shapes, "-m", shape_model, "--out", tmp_path / "a.csv")
        assert failed_cleanly(run(*words), 2, "is using")


def test_a_terminal_shows_how_many_shapes_per_second(shape_model, clouds, tmp_path):
    words = ["predict", str(clouds), "-m", str(shape_model), "--out", str(tmp_path / "a.csv")]
    result = CliRunner().invoke(app, words, env={"FORCE_COLOR": "1", "COLUMNS": "120"})
    assert "69/69" in result.stderr
    assert "shapes/s" in result.stderr
    assert "images" not in result.stderr


def test_a_broken_shape_does_not_keep_the_others_from_their_answers(run, shape_model, shapes):
    (shapes / "broken.ply").write_bytes(b"ply")
    result = run("predict", shapes, "-m", shape_model, "--json")
    assert failed_cleanly(result, 1, "broken.ply")
    assert len(json.loads(result.stdout)["shapes"]) == 3


def test_images_and_shapes_are_not_confused(run, shape_model, model_file, shapes, folder, tmp_path):
    (empty := tmp_path / "empty").mkdir()
    assert failed_cleanly(run("predict", empty, "-m", model_file), 2, "holds no image")  # control: no shapes either
    takes_shapes = "but the model takes shapes"
    takes_images = "the model untrained takes images: name a model of shapes, for example --model modelnet10"
    for words in (("predict",), ("upright", "--out", tmp_path / "out")):
        assert failed_cleanly(run(*words, folder / "zero.png", "-m", shape_model), 2, takes_shapes)
        assert failed_cleanly(run(*words, folder, "-m", shape_model), 2, takes_shapes)
        assert failed_cleanly(run(*words, shapes / "chair.off", "-m", model_file), 2, takes_images)
        assert failed_cleanly(run(*words, shapes, "-m", model_file), 2, f"holds shapes, but {takes_images}")
    words = ("predict", shapes / "chair.off", "-m", model_file, "--out", tmp_path / "a.csv")
    assert failed_cleanly(run(*words), 2, takes_images)
    assert not (tmp_path / "out").exists()
    assert failed_cleanly(run("bench", shape_model), 2, "is a model of shapes, but one that takes images")
    for command in ("audit", "export"):
        data = ("--data", shapes)
        assert failed_cleanly(run(command, model_file, *data), 2, "at least two classes are needed")


def test_what_is_for_images_is_refused_and_not_ignored(run, shape_model, shapes, tmp_path):
    """An address without a file system behind it must not become an empty table of answers."""
    out = ("--out", tmp_path / "a.csv")
    for given in ((), (shapes,)):
        result = run("predict", *given, "s3://bucket/scans", "-m", shape_model, *out)
        assert failed_cleanly(result, 2, "s3://bucket/scans: a model of shapes reads files on this machine only")
    for words in ((), out):
        result = run("predict", shapes, "-m", shape_model, "--workers", "2", *words)
        assert failed_cleanly(result, 2, "--workers is for images, but the model takes shapes")
    assert not (tmp_path / "a.csv").exists()
    assert run("predict", shapes, "-m", shape_model, *out).exit_code == 0  # control
