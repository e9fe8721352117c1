"""The answers of Ray are those of one machine: with the real Ray, on two workers."""

import json
import subprocess
import sys

import pytest
from commands import save_network
from PIL import Image

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.inference.model import BATCH

pytest.importorskip("ray", reason="Ray is not installed: pip install 'equicaps[ray]'")
psutil = pytest.importorskip("psutil", reason="psutil, which Ray's own processes are found with, is not installed")

import pyarrow  # noqa: E402 - what Ray needs

from equicaps.inference.ray import Predictor  # noqa: E402

PROGRAM = """
import json, subprocess, sys
from pathlib import Path

import psutil

from equicaps.inference import ray as engine

model, images, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
engine.OBJECT_STORE = 100 * 2**20
with engine._started(2, None) as ray:
    address = ray.get_runtime_context().gcs_address
    command = [sys.executable, "-m", "equicaps.cli.main", "predict", images, "--model", model, "--engine", "ray"]
    done = subprocess.run([*command, "--address", address, "--out", folder / "ray.csv"], capture_output=True, text=True)
    session = ray._private.worker._global_node.get_session_dir_path()
    here = [process for process in psutil.process_iter() if session in " ".join(process.cmdline())]
    listening = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in [*here, psutil.Process()]
        for connection in process.net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
print(json.dumps({"code": done.returncode, "said": done.stdout + done.stderr, "listening": sorted(listening),
                  "processes": len(here)}))
"""


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("model") / "untrained.safetensors")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """More than the blocks of two workers, and one file that cannot be read."""
    folder = tmp_path_factory.mktemp("images")
    for number, digit in enumerate(embedded_digits("test").images[: 9 * BATCH, 0]):
        Image.fromarray((digit * 255).byte().numpy()).save(folder / f"{number:03}.png")
    (folder / "100.png").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="module")
def found(model_file, images, tmp_path_factory):
    """What a program finds in a Ray of its own, in which only this program and the workers listen."""
    folder = tmp_path_factory.mktemp("found")
    command = [sys.executable, "-c", PROGRAM, model_file, images, folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout.splitlines()[-1]), "file": folder / "ray.csv"}


def test_a_cluster_writes_the_bytes_of_one_machine(found, model_file, images, tmp_path):
    """Nine batches in two blocks, so two workers; the exit code tells of the file that cannot be read."""
    from equicaps.inference.to_file import predict_to_file

    local = predict_to_file(load(model_file), map(str, sorted(images.iterdir())), tmp_path / "local.csv")
    assert (local.images, local.failed) == (9 * BATCH, 1)
    assert found["code"] == 1
    assert "answers for 288 images" in found["said"]
    assert "1 of 288 images could not be read" in found["said"]
    assert found["file"].read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_only_this_machine_can_reach_a_ray_that_was_started_here(found):
    assert found["processes"] > 2  # guard: they were found
    assert found["listening"] == ["127.0.0.1"]


@pytest.mark.parametrize("column", ["path", "bytes"])
def test_a_predictor_adds_answers_to_paths_and_to_contents(model_file, images, column):
    """Other columns stay; contents are left out. It needs no Ray to be tried."""
    paths = [images / "000.png", images / "100.png", images / "001.png"]
    sources = [str(path) if column == "path" else path.read_bytes() for path in paths]
    model = load(model_file)
    table = Predictor(model, column)(pyarrow.table({column: sources, "number": [1, 2, 3]}))
    kept = ["path", "number"] if column == "path" else ["number"]
    assert table.column_names[: len(kept) + 1] == [*kept, "label"]
    answers = [answer for _, answer in model.predict_files(paths)]
    assert table["label"].to_pylist() == [answers[0].label, None, answers[2].label]
    assert table["confidence"].to_pylist() == [answers[0].confidence, None, answers[2].confidence]
    assert "not a readable image" in table["error"].to_pylist()[1]


@pytest.mark.usefixtures("without_shape_checks")
def test_a_predictor_says_which_format_of_batches_it_takes(model_file):
    with pytest.raises(TypeError, match="batch_format='pyarrow'; a dict came"):
        Predictor(model_file)({"path": []})
