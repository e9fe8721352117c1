"""Records of trainings, without any training."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import save_network
from typer.testing import CliRunner

from equicaps import load
from equicaps.errors import NotFoundError, UsageError
from equicaps.training.log import provenance
from reproduction import protocols
from reproduction.__main__ import app
from reproduction.results import Results, described
from reproduction.trainings import TRAININGS

COMMITTED = Path(__file__).resolve().parents[2] / "results"
NAME = "rotated-steerable_cnn"


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """A record that claims too much, and its weights; written by a commit long ago."""
    monkeypatch.setattr(protocols, "QUICK_EVERY", 50)
    (tmp_path / "runs").mkdir()
    save_network(tmp_path / "runs" / f"{NAME}.safetensors", "steerable_cnn")
    figures = {"step": 7, "images_seen": 448, "accuracy": 100.0, "agreement_accuracy": 100.0, "images": 10_000}
    record = {"run": NAME, "protocol": "rotated", "quick": True, "commit": "abc1234", "figures": figures,
              "images_seen": 448, "cpu_seconds": 60.0, "data": {"name": "digits", "images": 50},
              "config": {"seed": 0, "model": {"preset": "steerable_cnn"}}}  # fmt: skip
    (tmp_path / "runs" / f"{NAME}.json").write_text(json.dumps(record))
    return Results(tmp_path, quick=True), record


def test_a_finished_training_is_measured_again_and_names_both_commits(finished):
    """What was measured is new; everything about the training is unchanged."""
    results, before = finished
    record = results.measure_again(NAME)
    assert results.training(NAME) == record
    found = record["figures"]
    assert (found["step"], found["images_seen"], found["images"]) == (7, 448, 20)
    assert found["accuracy"] < 60  # of a network that has learned nothing
    assert record["measured_with"] == provenance()
    assert {key: value for key, value in record.items() if key not in ("figures", "measured_with")} == {
        key: value for key, value in before.items() if key != "figures"
    }


def test_an_entry_says_which_commit_measured_it(finished):
    results, before = finished
    assert described(before)["measured_with"] == described(before)["commit"] == "abc1234"
    after = described(results.measure_again(NAME))
    assert (after["commit"], after["measured_with"]) == ("abc1234", provenance()["commit"])


def test_what_was_not_trained_cannot_be_measured_again(tmp_path):
    with pytest.raises(NotFoundError, match="must be trained before"):
        Results(tmp_path).measure_again(NAME)
    assert list(tmp_path.iterdir()) == []


FINISHED = sorted(path.stem for path in (COMMITTED / "runs").glob("*.json"))
WEIGHTS = sorted(path.stem for path in (COMMITTED / "runs").glob("*.safetensors"))


@pytest.mark.parametrize("name", FINISHED)
def test_every_committed_training_has_the_settings_of_the_list(name):
    """Their files were written by older versions: the settings compare equal."""
    entry = Results(COMMITTED, train=False).entry(name)
    assert (entry["run"], entry["preset"]) == (name, TRAININGS[name].preset)


def test_weights_are_kept_where_something_is_measured_or_drawn_from_them():
    assert {"rotated-steerable", "upright-steerable", "rotated-paper", "upright-plain_cnn"} <= set(WEIGHTS)
    assert set(WEIGHTS) <= set(FINISHED) <= set(TRAININGS)
    assert sum(path.stat().st_size for path in (COMMITTED / "runs").glob("*.safetensors")) < 12e6


def test_a_training_without_weights_has_figures_but_no_network(finished):
    results, _ = finished
    (results.folder / "runs" / f"{NAME}.safetensors").unlink()
    assert results.entry(NAME)["run"] == NAME
    assert results.trained(NAME) is None
    with pytest.raises(NotFoundError, match="without weights"):
        results.measure_again(NAME)


@pytest.mark.parametrize("name", WEIGHTS)
def test_committed_weights_load(name):
    """The network of every file is built."""
    _, network = Results(COMMITTED, train=False).trained(name)
    assert not network.training
    model = load(COMMITTED / "runs" / f"{name}.safetensors")
    assert len(model.classes) == 10


def test_other_settings_are_refused(monkeypatch):
    """Control: a longer training is not the one on disk."""
    monkeypatch.setitem(TRAININGS, NAME, replace(TRAININGS[NAME], steps=1001))
    with pytest.raises(UsageError, match=r"other settings \(budget\.steps\)"):
        Results(COMMITTED, train=False).training(NAME)


def test_train_lists_every_training_with_its_state(finished):
    results, _ = finished
    results.unfinished("rotated-paper").mkdir(parents=True)
    done = CliRunner().invoke(app, ["train", "--results", str(results.folder)])
    assert done.exit_code == 0, done.output
    states = dict(reversed(line.split()) for line in done.stdout.splitlines())
    assert states == dict.fromkeys(TRAININGS, "missing") | {NAME: "finished", "rotated-paper": "unfinished"}


def test_train_trains_nothing_that_is_finished_and_prints_its_figures(tmp_path):
    done = CliRunner().invoke(app, ["train", NAME, "--results", str(COMMITTED)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f'{NAME}: {{"step": 1000')


@pytest.mark.parametrize("command", ["train", "ship"])
def test_unknown_names_are_refused(command):
    done = CliRunner().invoke(app, [command, "nonsense"])
    assert done.exit_code == 2
    assert "unknown: nonsense; choose from" in done.stderr


def test_a_quick_training_is_not_taken_for_a_full_one(finished):
    results, _ = finished
    with pytest.raises(UsageError, match=f"holds a quick training of {NAME}"):
        Results(results.folder).training(NAME)


@pytest.mark.parametrize("quick", [True, False])
def test_only_full_results_of_the_checkout_are_published(quick):
    assert Results(COMMITTED, quick=quick).published is not quick
    assert not Results(COMMITTED / "elsewhere", quick=quick).published
