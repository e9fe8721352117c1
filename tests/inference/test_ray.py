"""The answers of Ray are those of one machine: with the real Ray, on two workers."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import save_network
from PIL import Image

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.inference.batches import BATCH

pytest.importorskip("ray", reason="Ray is not installed: pip install 'equicaps[ray]'")
psutil = pytest.importorskip("psutil", reason="psutil, which Ray's own processes are found with, is not installed")

import pyarrow.parquet  # noqa: E402 - what Ray needs

from equicaps.inference.ray import Predictor  # noqa: E402
from equicaps.inference.to_file import predict_to_file  # noqa: E402

EXAMPLE = Path(__file__).parents[2] / "examples" / "predict_on_ray.py"
PROGRAM = """
import json, runpy, subprocess, sys

import psutil

from equicaps.inference import ray as engine

model, images, folder, example = sys.argv[1:]
engine.OBJECT_STORE = 100 * 2**20
with engine._started(2, None) as ray:
    session = ray._private.worker._global_node.get_session_dir_path()
    running = psutil.process_iter(["cmdline"])  # None for those that have just ended
    processes = [process for process in running if session in " ".join(process.info["cmdline"] or ())]
    connections = [found for process in [*processes, psutil.Process()] for found in process.net_connections()]
    listening = {found.laddr.ip.removeprefix("::ffff:") for found in connections if found.status == psutil.CONN_LISTEN}
    command = [sys.executable, "-m", "equicaps.cli.main", "predict", images, "--model", model, "--engine", "ray",
               "--address", ray.get_runtime_context().gcs_address, "--out", f"{folder}/ray.csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    runpy.run_path(example)["main"](images, f"{folder}/example", model)
print(json.dumps({"processes": len(processes), "listening": sorted(listening), "code": done.returncode,
                  "said": done.stdout + done.stderr}))
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
    """What a program finds that starts Ray as ``equicaps predict`` does, and lets others join it."""
    folder = tmp_path_factory.mktemp("found")
    command = [sys.executable, "-c", PROGRAM, model_file, images, folder, EXAMPLE]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout.splitlines()[-1]), "folder": folder}


@pytest.fixture(scope="module")
def local(model_file, images, tmp_path_factory):
    """The file that one machine writes."""
    out = tmp_path_factory.mktemp("local") / "local.csv"
    outcome = predict_to_file(load(model_file), map(str, sorted(images.iterdir())), out)
    assert (outcome.files, outcome.failed) == (9 * BATCH, 1)
    return out


def test_a_cluster_writes_the_bytes_of_one_machine(found, local):
    """Nine batches in two blocks, so two workers; the exit code tells of the file that cannot be read."""
    assert found["code"] == 1
    assert "ray.csv: answers for 288 images\n" in found["said"]
    assert "error: 1 of 288 images could not be read" in found["said"]
    assert (found["folder"] / "ray.csv").read_bytes() == local.read_bytes()


def test_a_pipeline_has_the_same_answers(found, local):
    """The example; its batches are others, so its numbers are the same up to rounding."""
    rows = sorted(pyarrow.parquet.read_table(found["folder"] / "example").to_pylist(), key=lambda row: row["path"])
    with local.open(encoding="utf-8", newline="") as file:
        for row, expected in zip(rows, csv.DictReader(file), strict=True):
            assert row["path"] == expected["file"]
            assert (row["error"] is None) == (expected["error"] == "")
            assert row["error"] or row["confidence"] == pytest.approx(float(expected["confidence"]), abs=1e-4)


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
