"""``equicaps upright`` with a model of shapes, as a user sees it."""

import json

import numpy as np
import pytest
import torch
from commands import failed_cleanly
from small_shapes import SOLIDS, save_point_network, write_off

from equicaps.data import read_shape
from equicaps.groups import SO3

TURN = SO3().random(generator=torch.Generator().manual_seed(3)).reshape(3, 3)
CHAIR = SOLIDS.surfaces[1].triangles


@pytest.fixture(scope="module")
def shape_model(tmp_path_factory):
    return save_point_network(tmp_path_factory.mktemp("shapes") / "solids.safetensors")


@pytest.fixture
def shapes(tmp_path):
    write_off(tmp_path / "shapes" / "chair.off", CHAIR)
    write_off(tmp_path / "shapes" / "more" / "chair.off", CHAIR @ TURN.T)
    np.savetxt(tmp_path / "shapes" / "points.xyz", SOLIDS.surfaces[2].sample(200, torch.Generator()).numpy())
    return tmp_path / "shapes"


def test_a_shape_and_its_rotation_become_the_same(run, shape_model, shapes, tmp_path):
    out = tmp_path / "out"
    result = run("upright", shapes, "--model", shape_model, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*")) == [
        "chair.ply", "contact_sheet.png", "more/chair.ply", "points.xyz",
    ]  # fmt: skip
    assert [entry["result"] for entry in found["shapes"]] == [
        str(out / name) for name in ("chair.ply", "more/chair.ply", "points.xyz")
    ]
    first, second = (read_shape(out / name, scale=False).triangles for name in ("chair.ply", "more/chair.ply"))
    torch.testing.assert_close(first, second, rtol=0, atol=2e-3)
    with pytest.raises(AssertionError):  # control: it was rotated
        torch.testing.assert_close(first, CHAIR, rtol=0, atol=1e-2)
    assert failed_cleanly(run("upright", shapes, "-m", shape_model, "--out", out), 2, "already exists")
    again = run("upright", shapes, "-m", shape_model, "--out", out, "--force")
    assert "3 shapes upright in" in again.stdout


@pytest.mark.parametrize("option", [["--quarter-turns"], ["--expand"], ["--tolerance", "5"]])
def test_options_for_images_are_refused(run, shape_model, shapes, tmp_path, option):
    words = ("upright", shapes, "-m", shape_model, "--out", tmp_path / "out", *option)
    assert failed_cleanly(run(*words), 2, "are for images, but the model takes shapes")


def test_inputs_are_never_written_over(run, shape_model, shapes):
    message = "is the folder of the inputs: choose another one"
    assert failed_cleanly(run("upright", shapes, "-m", shape_model, "--out", shapes), 2, message)
