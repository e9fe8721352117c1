"""Records of trainings, without any training."""

import json

import pytest
from commands import save_network

from equicaps.training.log import provenance
from reproduction import protocols
from reproduction.session import described
from reproduction.trainings import RUNS_FOLDER, measure_again


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A record that claims too much, and its weights; written by a commit long ago."""
    monkeypatch.setattr(protocols, "QUICK_EVERY", 50)
    folder = tmp_path / RUNS_FOLDER
    folder.mkdir()
    save_network(folder / "old.safetensors", "steerable_cnn")
    figures = {"step": 7, "images_seen": 448, "accuracy": 100.0, "agreement_accuracy": 100.0, "images": 10_000}
    record = {"run": "old", "protocol": "rotated", "quick": True, "commit": "abc1234", "figures": figures,
              "images_seen": 448, "cpu_seconds": 60.0, "data": {"name": "digits", "images": 50},
              "config": {"seed": 0, "model": {"preset": "steerable_cnn"}}}  # fmt: skip
    (folder / "old.json").write_text(json.dumps(record))
    return tmp_path, record


def test_a_finished_training_is_measured_again_and_names_both_commits(finished):
    """What was measured is new, what was trained is as it was."""
    folder, before = finished
    record = measure_again("old", folder)
    assert json.loads((folder / RUNS_FOLDER / "old.json").read_text()) == record
    found = record["figures"]
    assert (found["step"], found["images_seen"], found["images"]) == (7, 448, 20)
    assert found["accuracy"] < 60  # of a network that has learned nothing
    assert record["measured_with"] == provenance()
    assert {key: value for key, value in record.items() if key not in ("figures", "measured_with")} == {
        key: value for key, value in before.items() if key != "figures"
    }


def test_a_record_says_which_commit_measured_it(finished):
    folder, before = finished
    assert described(before, "digits")["measured_with"] == described(before, "digits")["commit"] == "abc1234"
    after = described(measure_again("old", folder), "digits")
    assert (after["commit"], after["measured_with"]) == ("abc1234", provenance()["commit"])
