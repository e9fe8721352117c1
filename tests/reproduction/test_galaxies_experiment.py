"""The figures of the walk-through from made-up predictions, and its page from a made-up record."""

import copy
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import equicaps
from equicaps.data import Dataset
from equicaps.errors import TrainingError, UsageError
from equicaps.images import principal_axis, rotate
from equicaps.inference import Prediction
from equicaps.models import CapsOutput, GroupCapsNet
from reproduction import galaxies, plots
from reproduction.__main__ import app
from reproduction.galaxies import METHODS, answers, summary
from reproduction.galaxies_page import run_commands, tables, write_images
from reproduction.galaxy_poses import compare_with_moments, fit_offsets, rotation_curve, spread
from reproduction.markdown import filled
from reproduction.results import Results

ROOT = Path(__file__).resolve().parents[2]
LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])


EXACT = {"images": 16, "predictions_changed": 0, "scores": 1e-6, "activations": 1e-7, "poses": 1e-6}


def run(labels, rotated=None, quarters=None, seed=0):
    """The part of a training's record that the tables need."""
    quarters = quarters or [labels] * 3
    return {
        "config": {"model": {"preset": "steerable"}}, "settings": {"rotated": True}, "parameters": 10, "seed": seed,
        "images_seen": 64, "cpu_minutes": 0.5, "commit": "abc", "method": "steerable",
        "test": {"as_they_are": labels, "any_angle": rotated or labels, "quarters": quarters,
                 "exactness": EXACT},
    }  # fmt: skip


CORRECT, HALF = "00112233", "00002222"


def test_a_row_is_the_mean_over_seeds_with_its_interval():
    row = summary([run(CORRECT), run(HALF, seed=1)], [run(CORRECT)], LABELS)
    assert row["as_they_are"]["accuracy"] == 75.0
    assert row["as_they_are"]["by_seed"] == [100.0, 50.0]
    assert row["as_they_are"]["interval"] == pytest.approx((40.93, 92.85), abs=0.01)
    assert row["as_they_are"]["by_class"] == [100.0, 50.0, 100.0, 50.0]
    assert row["as_they_are"]["balanced_accuracy"] == 75.0
    assert row["as_they_are"]["less_than_reference"] == -25.0
    assert row["as_they_are"]["plus_minus"] == pytest.approx(196 * 0.2673 / 8**0.5, abs=0.01)


def test_predictions_that_rotations_change_are_counted():
    row = summary([run(CORRECT, rotated=HALF, quarters=[CORRECT, HALF, CORRECT])], [run(CORRECT)], LABELS)
    assert (row["quarter_turns_changed"], row["quarter_turns"]) == (4, 24)
    assert row["any_angle_changed"] == 50.0


def test_quarter_turns_change_no_answer_of_an_untrained_steerable_network():
    network = GroupCapsNet.from_preset("steerable", num_classes=4).eval()
    found = answers(network, torch.rand(6, 1, 32, 32))
    assert found["quarters"] == [found["as_they_are"]] * 3
    assert found["exactness"]["images"] == 12


def bars(degrees):
    bar = torch.zeros(1, 1, 48, 48)
    bar[..., 22:26, 8:32] = torch.linspace(0.4, 1.0, 24)
    return rotate(bar.expand(len(degrees), -1, -1, -1), degrees)


class Oracle:
    """Takes the centre of mass for the pose, which therefore rotates with the image."""

    def predict(self, images):
        offsets = torch.arange(48) - 23.5
        pose = torch.stack(((images.sum((1, 2)) * offsets).sum(-1), -(images.sum((1, 3)) * offsets).sum(-1)), -1)
        poses = torch.nn.functional.normalize(pose, dim=-1).unsqueeze(1).expand(-1, 4, 2)
        output = CapsOutput(torch.ones(len(images), 4), torch.ones(len(images), 4), poses)
        angles = torch.rad2deg(torch.atan2(poses[:, 0, 1], poses[:, 0, 0]))
        labels = torch.zeros(len(images), dtype=torch.int64)
        return Prediction(labels, torch.ones(len(images)), angles, output, ("a", "b", "c", "d"))


def test_offsets_are_fitted_modulo_180_class_by_class():
    axis = torch.tensor([10.0, 100.0, 179.0, 40.0, 60.0])
    labels = torch.tensor([0, 0, 0, 2, 2])
    angles = axis + torch.tensor([30.0, 210.0, 30.0, 90.0, -88.0])  # heads either way
    offsets = fit_offsets(labels, angles, axis, torch.ones(5, dtype=torch.bool), classes=4, period=180)
    assert offsets[0] == pytest.approx(30.0, abs=1e-3)
    assert offsets[2] % 180 == pytest.approx(91.0, abs=1e-3)
    assert spread(torch.tensor([-1.0, 2.0, 40.0]))["quartiles"] == [1.5, 2.0, 21.0]
    assert spread(torch.zeros(0)) is None


def test_a_pose_that_follows_the_rotation_has_no_error_and_one_that_does_not_has():
    """Control: a model that ignores the image."""
    data = Dataset("bars", bars(torch.tensor([0.0, 30.0, 100.0])), torch.zeros(3, dtype=torch.int64), ("a",))
    everything = torch.ones(3, dtype=torch.bool)
    for found, allowed in zip(
        rotation_curve(Oracle().predict, data, everything, [90.0, 37.5]), (1e-3, 1.5), strict=True
    ):
        assert max(found["pose_error_mean"], found["axis_error_median"]) < allowed
        assert found["predictions_changed"] == 0

    class Blind(Oracle):
        def predict(self, images):
            return super().predict(torch.ones_like(images) * torch.linspace(0, 1, 48))

    [blind] = rotation_curve(Blind().predict, data, everything, [37.5])
    assert blind["pose_error_median"] == pytest.approx(37.5, abs=0.01)


def test_poses_of_the_oracle_agree_with_the_moments_and_those_of_other_sources_do_not():
    """The oracle's pose is the direction of the light, which lies on the bar's axis; one offset is found, here none."""
    names = ("a", "b", "c", "d")
    angles = torch.tensor([0.0, 40.0, 75.0, 130.0, 200.0, 310.0])
    valid, test = (Dataset("bars", bars(angles + more), torch.zeros(6, dtype=torch.int64), names) for more in (0, 25))
    found = compare_with_moments(Oracle().predict, valid, test)
    for kind in ("axis", "centroid"):
        assert found[kind]["differences"]["all"]["quartiles"][2] < 2
        assert found[kind]["differences"]["b"] is None
        assert found[kind]["control"]["quartiles"][0] > 20
        assert found[kind]["offsets"][0] == pytest.approx(0.0, abs=1.5)
    assert [row["degrees"] for row in found["curve"]][::6] == [0.0, 45.0, 90.0]


@pytest.fixture
def record():
    found = {"sources": 6, "quartiles": [2.0, 5.0, 11.0]}
    curve = [{"degrees": 7.5, "predictions_changed": 2, "pose_error_median": 1.0, "pose_error_mean": 2.0,
              "axis_error_median": 0.5}]  # fmt: skip
    classes = ["FRI", "FRII", "Compact", "Bent"]
    kind = {"differences": dict.fromkeys(["all", *classes], found) | {"Compact": None}, "control": found,
            "poses": [30.0, None] * 4, "expected": [40.0, None] * 4}  # fmt: skip
    measured = {"axis": kind, "centroid": kind, "curve": curve, "predicted": "0" * 8}
    trial = {"trial": "some crop", "valid_accuracy_any_angle": 75.5, "images_seen": 4000, "cpu_minutes": 0.85}
    runs = [run(CORRECT), run(HALF, seed=1)]
    return {
        "data": {"images": 8, "classes": classes},
        "trials": [trial],
        "runs": [{**entry, "axes": measured} for entry in runs],
        "rows": {method: summary(runs, runs[:1], LABELS) for method in METHODS},
    }  # fmt: skip


def test_tables_say_what_the_record_says(record):
    made = tables(record)
    assert "75.0 % (40.9 to 92.9)" in made["results"]
    assert "-25.0 ± 18.5" in made["results"]
    assert "0 of 48" in made["results"]
    assert "(6) | 5.0° (2.0 to 11.0)" in made["axes"]
    assert ("45°" in made["axes"], "90°" in made["directions"]) == (True, True)
    assert "Compact (0) | none" in made["axes"]
    assert "| 7.5° | 2 | 1.00° | 2.00° | 0.50° |" in made["rotation"]
    assert "| some crop | 75.5 % | 4,000 | 0.8 |" in made["trials"]
    changed = copy.deepcopy(record)
    changed["rows"]["cnn"]["any_angle"]["accuracy"] = 12.3
    assert tables(changed)["results"] != made["results"]


def test_blocks_are_replaced_and_missing_ones_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- results: whatever -->\nold\n<!-- end of results -->\nb\n")
    text = filled(page, {"results": "new \\1\n"})
    assert text == "a\n<!-- results: whatever -->\n\nnew \\1\n\n<!-- end of results -->\nb\n"
    page.write_text(text)
    assert filled(page, {"results": "new \\1\n"}) == text
    with pytest.raises(UsageError, match="must contain '<!-- axes: "):
        filled(page, {"axes": ""})


def test_the_picture_is_drawn(record, tmp_path):
    images = bars(torch.arange(8) * 20.0)
    data = Dataset("bars", images, LABELS, ("FRI", "FRII", "Compact", "Bent"))
    assert principal_axis(images[:, 0]).roundness.max() < 0.5
    plots.galaxies(tmp_path / "picture.png", record, data)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_committed_picture_is_small():
    assert (ROOT / "docs" / "figures" / "galaxies.png").stat().st_size < 300_000


def test_commands_are_run_again_and_everything_else_stays(tmp_path):
    """The command finds the training as runs/galaxies; control: one that fails is named."""
    (tmp_path / "trained").mkdir()
    page = "a\n\n```console\n$ equicaps --version\nold\nlines\n```\n\n```console\n$ ls\nother\n```\n"
    data = Dataset("bars", bars(torch.arange(8) * 20.0), LABELS, ("FRI", "FRII", "Compact", "Bent"))
    console = Console(quiet=True)
    text = run_commands(page, tmp_path / "trained", data, None, console)
    assert text == page.replace("old\nlines", f"equicaps {equicaps.__version__}")
    with pytest.raises(TrainingError, match="equicaps nonsense failed"):
        run_commands("```console\n$ equicaps nonsense\n```", tmp_path / "trained", data, None, console)


def test_three_sources_of_each_class_become_images(tmp_path):
    data = Dataset("bars", bars(torch.arange(8) * 20.0), LABELS, ("FRI", "FRII", "Compact", "Bent"))
    write_images(tmp_path / "sources", data)
    names = {path.name for path in (tmp_path / "sources").iterdir()}
    assert names == {f"{name}-{number}.png" for name in data.classes for number in (0, 1)}  # there are only two
    assert np.asarray(Image.open(tmp_path / "sources" / "FRI-0.png")).max() == 255


def test_everything_is_trained_once_tested_and_drawn(tmp_path, monkeypatch):
    """One step on eight bars; a second call trains nothing, and results elsewhere write no page."""
    data = Dataset("bars", bars(torch.arange(8) * 20.0)[..., 8:-8, 8:-8], LABELS, ("FRI", "FRII", "Compact", "Bent"))
    monkeypatch.setattr(galaxies, "load_galaxies", lambda split, root, **preparation: data)
    tiny = galaxies.Training(steps=1, batch=4)
    cnn = replace(tiny, preset="steerable_cnn", rotated=False)
    monkeypatch.setattr(galaxies, "TRIALS", {"one": tiny})
    monkeypatch.setattr(galaxies, "METHODS", {"steerable": [tiny], "cnn": [cnn]})
    monkeypatch.setattr(galaxies, "Training", lambda: tiny)
    page = (ROOT / "docs" / "galaxies.md").read_text()
    done = [CliRunner().invoke(app, ["galaxies", "--results", str(tmp_path)]) for _ in range(2)]
    assert [each.exit_code for each in done] == [0, 0], done[0].output + done[1].output
    assert done[0].stderr.count("training ") == 2  # the trial is the first method's training, too
    assert "training " not in done[1].stderr
    record = json.loads((tmp_path / "galaxies.json").read_text())
    assert [(run["method"], "axes" in run) for run in record["runs"]] == [("steerable", True), ("cnn", False)]
    assert record["rows"]["steerable"]["quarter_turns_changed"] == 0
    assert (record["rows"]["cnn"]["rotated"], record["runs"][0]["parameters"]) == (False, 156_840)
    assert "| **`steerable`**, rotated in training | 156,840 | 1 |" in tables(record)["results"]
    assert (tmp_path / "figures" / "galaxies.png").exists()
    assert (ROOT / "docs" / "galaxies.md").read_text() == page


def test_galaxies_are_trained_on_one_split_and_chosen_on_another(tmp_path, monkeypatch):
    """Never on the test split; only training images are repeated to balance the classes."""
    labels = torch.tensor([0, 0, 1])
    monkeypatch.setattr(
        galaxies,
        "load_galaxies",
        lambda split, root, **_: Dataset(split, torch.zeros(3, 1, 32, 32), labels, ("a", "b")),
    )
    seen = []
    monkeypatch.setattr(galaxies, "finish_training", lambda *arguments: seen.append(arguments) or {})
    galaxies._record(galaxies.Training(), Results(tmp_path), None)
    [(_, data, _, evaluation, _, _)] = seen
    assert (data.name, len(data)) == ("train, classes balanced by repetition", 4)
    assert (evaluation.data.name, len(evaluation.data)) == ("valid", 3)
    assert len(galaxies.Training().data("test", None)) == 3


def test_answers_are_given_after_each_of_three_quarter_turns():
    """A network that only sees which corner is lit."""

    class Corners(GroupCapsNet):
        def __init__(self):
            torch.nn.Module.__init__(self)

        def forward(self, images):
            corners = torch.stack([images[:, 0, y, x] for y, x in ((0, 0), (-1, 0), (-1, -1), (0, -1))], -1)
            return CapsOutput(corners, corners, torch.zeros(len(images), 4, 2))

    image = torch.zeros(1, 1, 8, 8)
    image[..., 0, 0] = 1
    found = answers(Corners(), image)
    assert (found["as_they_are"], found["quarters"]) == ("0", ["1", "2", "3"])
