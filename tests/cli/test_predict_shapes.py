"""``equicaps predict`` with a model of shapes, as a user sees it; and shapes where images are expected."""

import csv
import json

import numpy as np
import pytest
import torch
from commands import failed_cleanly
from PIL import Image
from small_shapes import SOLIDS, save_point_network, write_off

from equicaps.groups import SO3

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
