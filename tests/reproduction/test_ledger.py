"""Settings are chosen on validation images, and every look at test images is written down."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from commands import failed_cleanly
from typer.testing import CliRunner

from equicaps.data import Dataset, embedded_digits
from equicaps.images import ROTATED
from equicaps.training import AnyAngle
from reproduction import ledger, protocols, results
from reproduction.__main__ import app
from reproduction.protocols import PROTOCOLS
from reproduction.results import ROOT, Results
from reproduction.trainings import TRAININGS

NAME = "upright-plain_cnn"


def refuse():
    raise AssertionError("a test image was read")


@pytest.fixture
def small(monkeypatch):
    """The protocol on the package's digits and in few steps, with other images while settings are chosen."""
    digits = embedded_digits("train")
    few = replace(
        PROTOCOLS["upright"],
        training=lambda: digits,
        selection=lambda: digits.take(slice(None, 40)),
        test=lambda: AnyAngle(digits.take(slice(60, 80))),
        validation=lambda: AnyAngle(digits.take(slice(40, 60))),
    )
    monkeypatch.setitem(PROTOCOLS, "upright", few)
    monkeypatch.setitem(TRAININGS, NAME, replace(TRAININGS[NAME], steps=1))
    return few


def test_the_same_weights_count_once(tmp_path):
    for commit in ("a", "b", "a"):
        ledger.write_down(tmp_path, run="x", trained_by=commit, test="MNIST")
    ledger.write_down(tmp_path, run="x", trained_by="a", test="affNIST")
    assert [(look["trained_by"], look["test"]) for look in ledger.looks(tmp_path)] == [
        ("a", "MNIST"), ("b", "MNIST"), ("a", "affNIST"),
    ]  # fmt: skip


def test_a_training_writes_down_that_it_looked(tmp_path, small):
    record = Results(tmp_path).training(NAME)
    (look,) = ledger.looks(tmp_path)
    assert (look["run"], look["trained_by"], look["test"]) == (NAME, record["commit"], small.tested_on)
    assert Results(tmp_path).trained(NAME) is not None
    Results(tmp_path).measure_again(NAME)
    assert len(ledger.looks(tmp_path)) == 1


def test_settings_are_chosen_without_the_test_images(tmp_path, small, monkeypatch):
    monkeypatch.setitem(PROTOCOLS, "upright", replace(small, test=refuse))
    with pytest.raises(AssertionError, match="a test image was read"):  # control
        Results(tmp_path).training(NAME)
    record = Results(tmp_path).validate(NAME, {"rate": 1e-3})
    assert record["figures"]["images"] == 20
    assert record["data"]["images"] == 40
    assert record["config"]["optimiser"]["rate"] == 1e-3
    path = tmp_path / "validation" / f"{NAME}-rate=0.001.json"
    assert json.loads(path.read_text())["figures"] == record["figures"]
    monkeypatch.setattr(results, "finish_training", refuse)
    assert Results(tmp_path).validate(NAME, {"rate": 1e-3})["figures"] == record["figures"]
    assert ledger.looks(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "described"),
    [({"shift": 0.5}, "shift=0.5,"), ({"shift": 2.0}, "shift=2.0,"), ({"stretch": 0.25}, "scale=(0.75, 1.25),")],
)
def test_settings_are_chosen_among_other_views(tmp_path, small, change, described):
    record = Results(tmp_path).validate(NAME, {"rate": 1e-3} | change)
    assert described in record["augmentation"]
    ((key, value),) = change.items()
    assert (tmp_path / "validation" / f"{NAME}-rate=0.001-{key}={value}.json").exists()


def test_views_change_only_in_what_is_named():
    assert results.changed_views(ROTATED, rate=1.0) == ROTATED
    assert results.changed_views(ROTATED, stretch=0.5) == replace(ROTATED, scale=(0.5, 1.5))


def test_no_quick_run_is_written_down(quick):
    assert not (quick / ledger.LEDGER).exists()


@pytest.mark.parametrize("name", ["rotated", "upright"])
def test_no_validation_image_is_trained_on_while_settings_are_chosen(name, monkeypatch):
    numbers = torch.arange(60_000)
    everything = Dataset("numbers", numbers.view(-1, 1, 1, 1).float(), numbers % 10, tuple("0123456789"))
    monkeypatch.setattr(protocols, "mnist", lambda split: everything)
    protocol = PROTOCOLS[name]
    trained = set((protocol.selection or protocol.training)().images[:].flatten().tolist())
    validated = set(protocol.validation().data.images[:].flatten().tolist())
    assert (len(trained), len(validated)) == (50_000, 10_000)
    assert not trained & validated


def test_the_committed_ledger_knows_every_committed_training():
    looked = {(look["run"], look["trained_by"]) for look in ledger.looks(ROOT / "results")}
    records = [json.loads(path.read_text()) for path in (ROOT / "results" / "runs").glob("*.json")]
    assert len(records) > 10
    assert {(record["run"], record["commit"]) for record in records} <= looked


@pytest.mark.parametrize("option", ["--stretch=1.5", "--shift=-1", "--rate=0"])
def test_settings_that_make_no_sense_are_refused_in_one_line(tmp_path, small, option):
    words = ["validate", NAME, option, "--results", str(tmp_path)]
    assert failed_cleanly(CliRunner().invoke(app, words), 2, "must be")


def test_the_sets_of_strangers_say_where_they_are_looked_for(tmp_path):
    """A benchmark, which a user may start without the data."""
    environment = {name: value for name, value in os.environ.items() if name != "EQUICAPS_DATA"}
    command = [sys.executable, "benchmarks/choices.py", "--sets", "coins", "--folder", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "error: EQUICAPS_DATA must name the folder of the data sets; see docs/data.md."
