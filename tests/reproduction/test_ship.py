"""Models for the package, made from trainings of nothing on a few digits."""

import pytest
import torch
from commands import save_network
from rich.console import Console

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.inference.model_files import read_model
from reproduction import ship

POSES = {"agreement_accuracy_any_angle", "pose_error_mean", "pose_error_median", "largest_change_of_agreements",
         "largest_change_of_poses"}  # fmt: skip


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """Ships a model whose training is a network of that preset."""

    def make(name, preset):
        runs, weights = tmp_path / "results" / "runs", tmp_path / "weights"
        for folder in (runs, weights):
            folder.mkdir(parents=True)
        training = save_network(runs / f"{ship.MODELS[name][0]}.safetensors", preset)
        monkeypatch.setattr(ship, "ROOT", tmp_path)
        monkeypatch.setattr(ship, "WEIGHTS", weights)
        monkeypatch.setattr(ship, "UNSEEN", (0, 20))
        monkeypatch.setattr(ship, "mnist", lambda split: embedded_digits(split).take(slice(0, 20)))
        ship.ship(name, Console(quiet=True))
        return training, weights / f"{name}.safetensors"

    return make


def test_a_shipped_model_has_the_weights_of_its_training_and_a_card(shipped):
    training, path = shipped("digits", "steerable")
    (before, _), (after, _) = read_model(training), read_model(path)
    for expected, found in zip(before.parameters(), after.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    card = load(path).card
    assert (card.name, card.frame, card.background) == ("digits", 28, "dark")
    assert card.command == "python -m reproduction ship digits"
    assert set(card.figures) >= POSES
    assert card.figures["predictions_changed_by_quarter_turns"] == 0
    assert card.figures["test_images"] == 20
    assert len(set(card.zeros)) > 1
    assert card.figures["angle_error_coverage"] > 60  # measured on other digits, and on few
    assert len(card.angle_errors.by_class) == 10


def test_a_network_without_poses_claims_none(shipped):
    _, path = shipped("digits-plain", "plain_cnn")
    card = load(path).card
    assert not set(card.figures) & POSES
    assert "accuracy_any_angle" in card.figures
    assert card.angle_errors is None
    assert card.convention == ship.NO_POSES
