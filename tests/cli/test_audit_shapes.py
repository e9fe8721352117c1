"""``equicaps audit`` with a model of shapes, as a user sees it."""

import copy
import json

import pytest
import torch
from commands import failed_cleanly
from small_shapes import parts, save_point_network, write_folder

from equicaps.inference import save_model


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data") / "solids", count=15)


@pytest.fixture
def calm_model(tmp_path, monkeypatch):
    """Exact to 1e-4 is promised for trained weights; those of untrained ones may round more."""
    monkeypatch.setattr("equicaps.inference.audit.ALLOWED", 1e-3)
    return save_point_network(tmp_path / "solids.safetensors")


def test_a_network_gets_its_certificate(run, calm_model, data, tmp_path):
    result = run("audit", calm_model, "--data", data, "--out", tmp_path / "audit", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["holds"]
    assert found["exact"]["predictions_changed"] == 0
    assert 0 < found["exact"]["scores"] < 1e-3
    assert json.loads((tmp_path / "audit" / "audit.json").read_text()) == found
    assert failed_cleanly(run("audit", calm_model, "--data", data, "--out", tmp_path / "audit"), 2, "already exists")
    shown = " ".join(run("audit", calm_model, "--data", data, "--images", 3).stdout.split())
    assert "the exact part holds" in shown
    assert "3 shapes, each compared with itself after 4 random rotations of space" in shown


def test_what_is_not_exact_has_no_certificate(run, data, tmp_path):
    """Control: scores that are ten thousand times as large do round more than is allowed."""
    network, content = copy.deepcopy(parts())
    with torch.no_grad():
        network.body.classes.norm.weight.mul_(1e4)
    save_model(tmp_path / "loud.safetensors", network, content)
    result = run("audit", tmp_path / "loud.safetensors", "--data", data)
    assert failed_cleanly(result, 1, "not exact: scores change by")
    assert "FAILS" in result.stdout


def test_data_that_do_not_fit_are_refused(run, data, folder, tmp_path):
    model = save_point_network(tmp_path / "solids.safetensors")
    assert failed_cleanly(run("audit", model), 2, "the model takes shapes: name a folder of shapes, or modelnet10")
    named = run("audit", model, "--data", "digits")  # the default of images: whoever names it means it
    assert failed_cleanly(named, 2, "'digits' is neither a data set of shapes (modelnet10) nor a folder of them")
    assert failed_cleanly(run("audit", model, "--data", folder), 2, "holds no shapes")
    assert failed_cleanly(run("audit", model, "--data", "nowhere"), 2, "neither a data set of shapes")
    assert failed_cleanly(run("audit", model, "--data", data, "--step", 30), 2, "--step is for images")
    write_folder(tmp_path / "few", count=15)
    for name in ("cup", "rocket"):
        (tmp_path / "few" / name).rename(tmp_path / "few" / f"{name}s")
    assert failed_cleanly(run("audit", model, "--data", tmp_path / "few"), 2, "but the model knows block, chair")
