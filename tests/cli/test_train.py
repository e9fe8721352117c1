"""``equicaps train`` as a user sees it: messages, files and exit codes."""

import json
import os
import signal
from dataclasses import replace

import pytest
import torch
from PIL import Image
from small_galaxies import SPLITS, npz, small_set
from symmetric_shapes import SHAPES, shapes
from typer.testing import CliRunner

from equicaps import load
from equicaps.cli.main import app
from equicaps.data import embedded_digits, galaxies, load_folder
from equicaps.data.catalogue import CATALOGUE
from equicaps.training import TrainConfig, load_checkpoint
from reproduction.galaxies import Training

OPTIONS = ("--batch", "8", "--preset", "steerable_cnn")


@pytest.fixture(autouse=True)
def few_digits(monkeypatch):
    few = replace(CATALOGUE["digits"], load=lambda split: embedded_digits(split).take(slice(0, 20)))
    monkeypatch.setitem(CATALOGUE, "digits", few)


def run(*words):
    return CliRunner().invoke(app, ["train", *map(str, words)])


def test_a_training_leaves_a_model_logs_and_a_json(tmp_path):
    result = run("digits", "--steps", 3, "--out", tmp_path, "--json", *OPTIONS)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["step"] == 3
    assert printed["config"]["batch"] == 8
    assert printed["figures"]["images"] == 20
    labels = embedded_digits("test").labels[:20]
    assert [sum(row) for row in printed["confusion"]] == labels.bincount(minlength=10).tolist()
    assert "accuracy" in result.stderr
    assert "test images by true class (rows) and answer (columns):" in result.stderr
    assert "each training image will be seen about 1.2 times" in result.stderr
    assert load(tmp_path).card.data.startswith("MNIST subset")
    assert {"steps.csv", "evaluations.csv", "result.json", "checkpoint.safetensors"} <= set(os.listdir(tmp_path))


def test_without_a_budget_the_training_plans_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("equicaps.training.trainer.enough_views", lambda images: 30 * 8)
    result = run("digits", "--out", tmp_path, "--json", *OPTIONS)
    assert result.exit_code == 0, result.output
    assert (
        "trains for at most 10 CPU-minutes, and then measures; the first steps tell how fast this machine is"
        in result.stderr
    )
    assert "plan: each training image will be seen about 12 times on average, in 0." in result.stderr
    assert json.loads(result.stdout)["step"] == 30
    assert "less if the validation" not in result.stderr  # there are none: of 20 images none is held back
    resumed = run("digits", "--resume", "--out", tmp_path)
    assert resumed.exit_code == 0, resumed.output
    assert "continuing the training" in resumed.stderr
    assert "plan:" not in resumed.stderr


def test_ctrl_c_then_resume_with_nothing_but_the_folder(tmp_path, monkeypatch):
    from equicaps.training import loop

    advance = loop.Trainer.advance

    def interrupted(self, stop=False, **options):
        if self.step == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return advance(self, stop, **options)

    monkeypatch.setattr(loop.Trainer, "advance", interrupted)
    stopped = run("digits", "--steps", 5, "--seed", 4, "--rate", 0.001, "--out", tmp_path, *OPTIONS)
    assert stopped.exit_code == 1
    assert "everything is saved" in stopped.stderr
    monkeypatch.setattr(loop.Trainer, "advance", advance)
    assert load_checkpoint(tmp_path)[1]["step"] < 5
    resumed = run("digits", "--resume", "--out", tmp_path)
    assert resumed.exit_code == 0, resumed.output
    assert load_checkpoint(tmp_path)[1]["step"] == 5
    other = run("digits", "--resume", "--out", tmp_path, "--rate", 0.1)
    assert other.exit_code == 2
    assert "optimiser.rate: 0.001 -> 0.1" in other.stderr
    upright = run("digits", "--resume", "--out", tmp_path, "--upright")
    assert "augmentation.rotation: 180.0 -> 0.0" in upright.stderr
    assert "choose a new folder" in upright.stderr
    assert "Augmentation(" not in upright.stderr


@pytest.fixture
def cells(tmp_path, monkeypatch):
    for number in range(6):
        path = tmp_path / "cells" / ("round" if number % 2 else "long") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 10 * number).save(path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cells"


@pytest.mark.parametrize("options", [(), ("--resume",)], ids=["new", "nothing to resume"])
@pytest.mark.parametrize("write", [lambda path: path.name, lambda path: f"./{path.name}", str], ids=["a", "./a", "/a"])
def test_a_folder_is_trained_at_its_own_size_however_it_is_written(write, options, cells):
    result = run(write(cells), "--steps", 1, "--json", *options, *OPTIONS)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["config"]["model"]["image_size"] == 32
    assert "6 grey images in all, 8x8, unchanged" in result.stderr  # what was done to the images
    assert ("contains no training yet" in result.stderr) == bool(options)
    assert "saw each of its 4 images about 2.0 times" in result.stderr
    assert load(cells.parent / "runs" / "cells-steerable_cnn").card.background == "dark"


@pytest.fixture
def never_enough(monkeypatch):
    """Whatever the last views are classified as, a training was too short."""
    monkeypatch.setattr("equicaps.cli.training_words.ENOUGH_ACCURACY", 101.0)


def test_images_of_rarer_classes_count_once_however_often_they_are_repeated(cells, never_enough):
    for number in range(6, 30):
        Image.new("L", (8, 8), 8 * number).save(cells / "long" / f"{number}.png")
    images = load_folder(cells).train
    seen, wrong = (f"about {16 / count:.1f} times on average" for count in (len(images), len(images.balanced())))
    assert seen != wrong
    done = run(cells, "--steps", 2, "--balance", *OPTIONS)
    assert done.exit_code == 0, done.output
    assert f"{len(images)} of them different, 2 classes" in done.stderr
    assert f"each training image will be seen {seen}" in done.stderr
    assert f"saw each of its {len(images)} images {seen}" in done.stderr


@pytest.mark.parametrize(("side", "tiny", "reducible"), [(1, True, False), (2, True, False), (3, False, False),
                                                         (32, False, False), (48, False, True)])  # fmt: skip
def test_tiny_images_are_noted_and_only_large_ones_are_to_be_reduced(side, tiny, reducible, cells, never_enough):
    for number, file in enumerate(sorted(cells.rglob("*.png"))):
        Image.new("L", (side, side), 10 * number).save(file)
    done = run(cells, "--steps", 1, *OPTIONS)
    assert done.exit_code == 0, done.output
    note = f"note: these images are only {side}x{side} pixels: there is hardly anything to see in them"
    assert done.stderr.count(note) == tiny
    assert "this training was short" in done.stderr
    assert ("or on smaller images with --size" in done.stderr) == reducible


def test_damaged_images_are_a_line_each_and_no_name_can_break_it(cells):
    """Our own line breaks are printed as such; those of names, and what would colour a terminal, are escaped."""
    for name in ("plain", "broken\n  line", "\x1b[31mred"):
        (cells / "round" / f"{name}.png").write_text(f"no image: {name}")
    done = run(cells, "--steps", 1, *OPTIONS)
    assert done.exit_code == 1, done.output
    first, *others = done.stderr.splitlines()
    assert first == "error: 3 of 9 images cannot be used; repair or remove them:"
    names = [r"\x1b[31mred", r"broken\n  line", "plain"]
    for line, name in zip(others, names, strict=True):
        assert line.startswith(f"  {cells}/round/{name}.png is not a readable image")


def test_a_single_damaged_image_is_one_line(cells):
    (cells / "round" / "broken\nline.png").write_text("no image")
    done = run(cells, "--steps", 1, *OPTIONS)
    assert done.exit_code == 1, done.output
    [line] = done.stderr.splitlines()
    assert line.startswith(rf"error: {cells}/round/broken\nline.png is not a readable image")


def test_a_resumed_run_keeps_its_size(cells):
    run(cells, "--steps", 1, "--size", 32, "--out", "run", *OPTIONS)
    resumed = run(cells, "--resume", "--out", "run", "--json")
    assert resumed.exit_code == 0, resumed.output
    assert json.loads(resumed.stdout)["config"]["model"]["image_size"] == 32


def test_a_size_that_blocks_do_not_fit_becomes_the_next_that_they_do(cells):
    done = run(cells, "--steps", 1, "--size", 33, "--json", *OPTIONS)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["config"]["model"]["image_size"] == 40
    assert "--size 33 became 40" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere",), 2, "neither a data set (digits, mnist, galaxies), nor a folder"),
        (("digits", "--preset", "huge"), 2, "'steerable'"),
        (("digits", "--schedule", "cosine"), 2, "one_cycle"),
        (("digits", "--mirror", "break"), 2, "distinguish"),
        (("digits", "--mirror", "ignore", "--preset", "paper"), 2, "can ignore mirroring, but the preset is 'paper'"),
        (("digits", "--minutes", 1, "--steps", 2), 2, "exactly one"),
        (("digits", "--steps", -1), 2, "positive"),
        (("digits", "--batch", 7), 2, "multiple of the 2 views"),
        (("digits", "--size", 0), 2, "--size"),
        (("digits", "--size", 33, "--preset", "huge"), 2, "'steerable'"),
        (("digits", "--device", "abacus"), 2, "abacus"),
        (("digits", "--device", "meta"), 2, "must be auto, cpu, cuda"),
        (("digits", "--device", "cuda:99"), 2, "there is no device 'cuda:99'"),
        (("digits", "--decay", -1), 2, "`weight_decay` must be a number, 0 or more"),
        (("digits", "--decay", "nan"), 2, "`weight_decay` must be"),
        (("digits", "--epochs", "inf"), 2, "`epochs` must be a positive number, but is inf"),
        (("digits", "--minutes", "inf"), 2, "`minutes` must be"),
        (("digits", "--consistency", "nan"), 2, "`consistency` must be"),
        (("digits", "--spread", -1), 2, "`spread` must be"),
        (("digits", "--reconstruction", "nan"), 2, "`reconstruction` must be"),
        (("digits", "--save-every", "nan"), 2, "`checkpoint_seconds` must be"),
        (("digits", "--seed", 2**70), 2, "`seed` must be"),
        (("digits", "--upright", "--consistency", 0.3), 2, "two views"),
        (("digits", "--out", "/dev/null/run"), 1, "cannot create the folder"),
        (("digits", "--steps", "many"), 2, "--steps"),
        (("digits", "--angles", "angles.csv"), 2, "belong to images of a folder"),
        ((), 2, "Missing argument"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(words, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*words)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    assert not (tmp_path / "runs").exists()  # before anything starts


def test_a_training_is_not_overwritten(tmp_path):
    assert run("digits", "--steps", 1, "--out", tmp_path, *OPTIONS).exit_code == 0
    again = run("digits", "--steps", 1, "--out", tmp_path, *OPTIONS)
    assert again.exit_code == 2
    assert "continue it with --resume, or name a new folder with --out" in again.stderr
    assert "parameters" not in again.stderr  # refused before anything is set up


def test_upright_training_sees_single_views(tmp_path):
    result = run("digits", "--upright", "--steps", 1, "--out", tmp_path, "--json", *OPTIONS)
    config = json.loads(result.stdout)["config"]
    assert config["views"] == 1
    assert config["objective"]["consistency"] == 0


def test_a_training_that_ignores_mirroring_is_saved_and_resumed_as_such(tmp_path):
    words = ("digits", "--batch", 4, "--out", tmp_path)
    done = run(*words, "--steps", 1, "--mirror", "ignore", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["config"]["model"]["mirror"] == "ignore"
    assert load(tmp_path).network.ignores_mirror
    resumed = run(*words, "--resume")
    assert resumed.exit_code == 0, resumed.output
    assert load(tmp_path).network.ignores_mirror
    other = run(*words, "--resume", "--mirror", "distinguish")
    assert other.exit_code == 2
    assert "model.mirror: ignore -> distinguish" in other.stderr


def test_galaxies_are_trained_and_audited_by_name(tmp_path, monkeypatch):
    """On a few made-up ones: the training of the walk-through, without the test split until the audit."""
    fields = small_set()
    monkeypatch.setattr(galaxies, "SHA256", galaxies.digest(fields))
    monkeypatch.setenv("EQUICAPS_DATA", str(tmp_path))
    (tmp_path / galaxies.FILE).write_bytes(npz(fields))
    out = tmp_path / "run"
    done = run("galaxies", "--balance", "--steps", 1, "--batch", 4, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert record["data"] == {"name": "FIRST radio galaxies (train), classes balanced by repetition", "images": 8}
    assert record["figures"]["images"] == SPLITS.count("valid")
    assert TrainConfig.from_dict(record["config"]).recipe() == Training(steps=1, batch=4).config().recipe()
    audited = CliRunner().invoke(app, ["audit", str(out), "--data", "galaxies", "--step", "180", "--json"])
    assert json.loads(audited.stdout)["data"] == "FIRST radio galaxies (test)"


def test_known_angles_are_learned_measured_and_kept(cells):
    """All images but one have a known angle."""
    files = sorted(cells.rglob("*.png"))
    rows = [f"{file.relative_to(cells.parent)},{30 if number else ''}" for number, file in enumerate(files)]
    angles = cells.parent / "angles.csv"
    angles.write_text("\n".join(["file,angle", *rows]))
    out = cells.parent / "run"
    result = run(cells, "--steps", 1, "--out", out, "--json", "--batch", 4, "--angles", angles)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["data"]["known_angles"] > 0
    assert f"angles known for {len(files) - 1} of them" in result.stderr
    assert printed["figures"]["angle_error_median"] >= 0
    assert "error of known angles" in result.stderr
    angles.write_text(angles.read_text().replace(",30", ",thirty", 1))
    wrong = run(cells, "--steps", 1, "--out", cells.parent / "other", "--angles", angles)
    assert wrong.exit_code == 2
    assert "angles.csv, row 3: the angle of" in " ".join(wrong.stderr.split())
    assert not (cells.parent / "other").exists()


def test_errors_of_symmetric_classes_are_told_alike_by_the_training_and_by_the_audit(tmp_path):
    """Bars, washers and arrows, 20 images each; whatever is found, the card, the figures and the audit agree on it."""
    images, labels = shapes()
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        path = tmp_path / "shapes" / SHAPES[label] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 * image[0]).round().byte().numpy()).save(path)
    done = run(tmp_path / "shapes", "--steps", 4, "--batch", 32, "--out", tmp_path / "run", "--json")
    assert done.exit_code == 0, done.output
    figures, model = json.loads(done.stdout)["figures"], load(tmp_path / "run")
    periods = dict(zip(model.classes, model.card.symmetries.periods.tolist(), strict=True))
    assert periods["bar"] == 180
    assert periods["arrow"] == 360
    rows = dict(zip(model.classes, map(sum, json.loads(done.stdout)["confusion"]), strict=True))
    modulo = sum(rows[name] for name, period in periods.items() if 0 < period < 360)
    left_out = sum(rows[name] for name, period in periods.items() if period == 0)
    assert (figures["images_modulo_period"], figures["images_of_round_classes"]) == (modulo, left_out)
    assert modulo >= rows["bar"] > 0
    assert model.card.figures["images_modulo_period"] == modulo
    said = f"(pose error: {modulo} modulo the period of their class"
    assert said in done.stderr
    words = ("audit", str(tmp_path / "run"), "--data", str(tmp_path / "shapes"), "--step", "180")
    audited = CliRunner().invoke(app, [*words, "--json"])
    found = json.loads(audited.stdout)
    assert (found["images_modulo_period"], found["images_of_round_classes"]) == (modulo, left_out)
    shown = CliRunner().invoke(app, words, env={"COLUMNS": "200"}).stdout
    assert f"any angle, {figures['images']} images {said}" in " ".join(shown.split())


def test_the_same_command_gives_the_same_checkpoint(tmp_path):
    """With the state of torch's own generator, from which a network with dropout would draw."""
    states = []
    for name in ("one", "two"):
        torch.rand(7)  # whatever happened before
        assert run("digits", "--steps", 2, "--out", tmp_path / name, *OPTIONS).exit_code == 0
        states.append(load_checkpoint(tmp_path / name)[0])
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
