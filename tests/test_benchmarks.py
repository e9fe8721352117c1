"""The benchmarks of networks run, here only briefly; their figures are not checked."""

import json
import subprocess
import sys
from pathlib import Path

from reproduction import symmetric_page

ROOT = Path(__file__).resolve().parents[1]


def test_the_benchmark_prints_its_table_and_writes_it_as_json(tmp_path):
    command = ["benchmarks/train_step.py", "--quick", "--only", "plain_cnn", "--seconds", "0.1"]
    done = subprocess.run(
        [sys.executable, *command, "--json", tmp_path / "speed.json"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "90,938" in done.stdout
    [row] = json.loads((tmp_path / "speed.json").read_text())["rows"]
    assert 0 < row["fraction_of_peak"] < 1
    assert row["inference"] > row["training"] > 1
    assert 1 < row["peak_mib"] < 1200


def test_the_papers_network_is_measured_beside_a_plain_cnn(tmp_path):
    command = ["benchmarks/paper_network.py", "--rounds", "1", "--seconds", "0.01", "--json", tmp_path / "paper.json"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "paper.json").read_text())["rows"]
    assert set(rows) == {"rotated digits", "noise"}
    for row in rows.values():
        assert row["plain CNN"]["training_ratio"] == row["plain CNN"]["inference_ratio"] == 1
        assert row["paper"]["inference"] > row["paper"]["training"] > 1


def test_trainings_with_and_without_known_angles_are_compared(tmp_path):
    command = [
        "benchmarks/known_angles.py",
        "--data",
        "digits",
        "--images",
        "40",
        "--validation-images",
        "160",
        "--test-images",
        "20",
        "--steps",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, *command, "--known", "0.5", "--json", tmp_path / "angles.json"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    without, known = json.loads((tmp_path / "angles.json").read_text())["rows"]
    assert (without["known_angles"], known["known_angles"]) == (0, 20)
    for row in (without, known):
        assert row["steps"] == 1
        assert 0 < row["all"]["median"] <= 180
        assert set(row["classes"]) <= set("0123456789")
    assert "when an image is rotated" in without["stated"]["meaning"]
    assert known["stated"]["meaning"].startswith("how far nine of ten angles are from known ones at most")
    for row in (without, known):
        assert row["stated"]["truth"]["angle_error_known_angles"] == 20
        assert 0 <= row["stated"]["rotation"]["angle_error_coverage"] <= 100


def test_angles_of_symmetric_things_are_measured_on_fresh_drawings(tmp_path):
    options = {
        "--steps": 2,
        "--images": 8,
        "--test-images": 1,
        "--fresh-images": 3,
        "--json": tmp_path / "symmetric.json",
    }
    command = ["benchmarks/symmetric.py", *(str(word) for option in options.items() for word in option)]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "symmetric.json").read_text())
    assert record["steps"] == 2
    assert {shape: row["true_period"] for shape, row in record["rows"].items()} == {
        "bar": 180, "triangle": 120, "square": 90, "hexagon": 60, "washer": 0, "flag": 360,
    }  # fmt: skip
    assert all(0 <= row["with_angle"] <= 3 for row in record["rows"].values())
    assert "| bar | 180° |" in symmetric_page.table(record)


def test_networks_on_points_are_measured_beside_a_pointnet(tmp_path):
    command = ["benchmarks/points.py", "--seconds", "0.01", "--json", tmp_path / "points.json"]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "points.json").read_text())["rows"]
    assert set(rows) == {"points", "points-paper", "PointNet"}
    assert rows["points"]["prediction"] > rows["points"]["training"] > 1
    assert abs(rows["PointNet"]["parameters"] / rows["points"]["parameters"] - 1) < 0.05
