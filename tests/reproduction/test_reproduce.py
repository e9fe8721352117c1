"""``python -m reproduction``: everything runs, and every figure says where it comes from."""

import json
import shutil

import pytest
import torch
from typer.testing import CliRunner

from equicaps.data import Dataset
from equicaps.errors import TrainingError, UsageError
from equicaps.groups import SO2
from reproduction import protocols, table1a, table1b
from reproduction.__main__ import app
from reproduction.figures import errors_along
from reproduction.plots import grid_centres, show_pose
from reproduction.protocols import PROTOCOLS, QUICK, quick_digits
from reproduction.results import Results
from reproduction.trainings import TRAININGS

PICTURES = (
    "output_poses", "layer_poses", "reconstructions", "pose_error_by_class", "accuracy_by_angle", "paper_output_poses",
    "paper_layer_poses", "paper_reconstructions", "paper_pose_error_by_class",
)  # fmt: skip
SOURCE = {"run", "seed", "config", "commit", "measured_with", "images_seen", "cpu_minutes", "trained_on", "tested_on",
          "test_images"}  # fmt: skip


def trained(content):
    """Every dict below that comes from a training."""
    if isinstance(content, dict):
        if "run" in content:
            yield content
        for value in content.values():
            yield from trained(value)


def test_every_record_is_labelled_quick(record):
    for name in ("table1a", "table1b", "exactness", "figures", "paper"):
        assert record(name)["quick"] is True
        assert record(name)["measured_with"]["torch"]


@pytest.mark.parametrize(
    ("name", "count"), [("table1a", 11), ("table1b", 3), ("exactness", 3), ("figures", 1), ("paper", 24)]
)
def test_every_figure_says_where_it_comes_from(record, name, count):
    entries = list(trained(record(name)))
    assert len(entries) == count
    for entry in entries:
        assert set(entry) >= SOURCE
        assert entry["images_seen"] == 64


def test_every_training_is_used_somewhere(record):
    """Nothing in the list is trained in vain."""
    used = {entry["run"] for name in ("table1a", "table1b", "exactness", "paper") for entry in trained(record(name))}
    assert used == set(TRAININGS)


@pytest.mark.parametrize("protocol", ["mnist_rot", "affnist"])
def test_regenerated_sets_are_named_as_their_generators_name_them(protocol):
    assert QUICK[protocol].test().data.name == PROTOCOLS[protocol].tested_on
    assert "regenerated" in PROTOCOLS[protocol].tested_on


def test_quick_digits_are_test_digits():
    assert quick_digits().name.startswith("MNIST subset (test")
    assert len(quick_digits()) == 200


def test_quarter_turns_change_no_prediction_of_ours_but_the_scores_of_the_plain_cnn(record):
    """After one step the running statistics are far off and scores reach 94, so rounding is 1e-5 of that."""
    networks = record("exactness")["networks"]
    whole = networks["whole"]
    assert len(set(whole["quarters"]["accuracy"].values())) == 1
    for found in whole["deviations"].values():
        assert found["predictions_changed"] == 0
        assert found["activations"] < 1e-4
        assert found["poses"] < 1e-3
        assert found["scores"] < 94 * 2e-5
    plain = networks["plain_cnn"]["deviations"]["upright"]  # control
    assert plain["scores"] > 1e-3
    assert plain["poses"] > 1


def test_histograms_are_fractions(record):
    rows = record("table1b")["rows"]
    assert set(rows) == {"naive", "naive_at_once", *table1b.ROWS}
    for row in rows.values():
        assert len(row["classes"]) == 10
        for part in row["classes"]:
            assert len(part["fractions"]) == 18
            assert sum(part["fractions"]) == pytest.approx(1)


def test_histogram_bins_and_classes():
    """Errors of 5, 15, 15 and 180 degrees fall into bins 0, 1, 1 and the last; one class each for the rest."""
    errors = torch.tensor([5.0, 15.0, 15.0, 180.0, *[95.0] * 9])
    labels = torch.tensor([0, 0, 0, 0, *range(1, 10)])
    found = table1b._statistics(errors, Dataset("digits", torch.zeros(13, 1, 1, 1), labels, tuple("0123456789")))
    first = found["classes"][0]["fractions"]
    assert (first[0], first[1], first[17]) == (0.25, 0.5, 0.25)
    assert found["classes"][3]["fractions"][9] == 1
    assert found["pose_error_mean"] == pytest.approx(errors.mean().item())


def test_pictures_are_drawn_and_small(quick):
    for name in PICTURES:
        picture = quick / "figures" / f"{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert 5_000 < picture.stat().st_size < 200_000, name


def test_arrows_point_where_poses_point():
    """A pose of +90 degrees is an arrow upwards on a y axis that goes upwards."""
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    axes.set_ylim(-1, 1)
    show_pose(axes, torch.tensor([0.0, 1.0]), 0.5, "black")
    quiver = axes.collections[0]
    assert (quiver.U[0], quiver.V[0]) == (0.0, 0.5)
    assert axes.transData.transform((0, 1))[1] > axes.transData.transform((0, 0))[1]


def test_grid_cells_have_their_centres():
    assert grid_centres(4, 16.0) == [-12.0, -4.0, 4.0, 12.0]


def test_poses_that_follow_have_no_error_and_those_that_stay_have_all_of_it():
    angles = (0.0, 45.0, 180.0)
    start = SO2().exp(torch.tensor([[0.3]]))
    follow = SO2().exp(torch.deg2rad(torch.tensor([[[a] for a in angles]])) + 0.3)
    torch.testing.assert_close(errors_along(follow, angles), torch.zeros(1, 3), atol=1e-3, rtol=0)
    stay = start[:, None].expand(1, 3, 2)
    torch.testing.assert_close(errors_along(stay, angles), torch.tensor([angles]), atol=1e-3, rtol=0)


def test_a_finished_training_is_not_trained_again(quick):
    """Its record is returned unchanged; a new training would have other timings."""
    before = (quick / "runs" / "rotated-plain_cnn.json").read_text()
    assert Results(quick, quick=True).training("rotated-plain_cnn") == json.loads(before)


def test_a_quick_training_is_refused_as_a_full_one(quick):
    with pytest.raises(UsageError, match="quick training"):
        Results(quick).training("rotated-plain_cnn")


def test_without_training_what_is_missing_stays_missing(tmp_path):
    found = table1a.table1a(Results(tmp_path, quick=True, train=False))
    assert all(cell is None for cells in found["cells"].values() for cell in cells.values())
    assert not (tmp_path / "runs").exists()


def test_weights_of_another_training_are_noticed(quick, tmp_path, monkeypatch):
    """The record's pose error must be that of the weights."""
    monkeypatch.setattr(protocols, "QUICK_EVERY", 25)
    shutil.copytree(quick / "runs", tmp_path / "runs")
    path = tmp_path / "runs" / "rotated-steerable.json"
    record = json.loads(path.read_text())
    record["figures"]["pose_error_mean"] += 1
    path.write_text(json.dumps(record))
    with pytest.raises(TrainingError, match="do not belong together"):
        table1b.table1b(Results(tmp_path, quick=True, train=False))


def test_unknown_tables_are_refused():
    done = CliRunner().invoke(app, ["table2"])
    assert done.exit_code == 2
