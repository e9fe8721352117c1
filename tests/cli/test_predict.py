"""``equicaps predict`` as a user sees it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import failed_cleanly
from PIL import Image

from equicaps import load
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.images.decode import open_image
from equicaps.inference import model_files

SHIPPED_DIGITS = Path(model_files.__file__).parent / "weights" / "digits.safetensors"
ROTATION = "how closely nine of ten angles follow when an image is rotated"


def predicted(run, model_file, *images):
    result = run("predict", *images, "--model", model_file, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["images"]


def test_a_quarter_turn_adds_90_degrees_and_changes_nothing_else(run, model_file, folder):
    still, turned = predicted(run, model_file, folder / "zero.png", folder / "turned.png")
    assert turned["label"] == still["label"]
    assert turned["confidence"] == pytest.approx(still["confidence"], abs=1e-4)
    assert turned["agreed_label"] == still["agreed_label"]
    assert (turned["angle"] - still["angle"]) % 360 == pytest.approx(90, abs=0.1)
    assert set(still["scores"]) == set(still["agreements"]) == set("0123456789")


def test_the_table_shows_both_outputs_and_the_convention(run, model_file, folder):
    result = run("predict", folder, "--model", model_file)
    assert result.exit_code == 0, result.output
    for text in ("zero.png", "zero.bmp", "confidence", "by agreement", "counter-clockwise", "°"):
        assert text in result.stdout


@pytest.mark.parametrize(("model", "shown"), [("digits", True), ("digits-plain", False)])
def test_the_table_says_what_the_error_of_an_angle_means(run, folder, model, shown):
    result = run("predict", folder / "zero.png", "--model", model)
    assert ("nine of ten" in result.stdout) == shown


def test_the_table_and_the_card_say_whether_errors_are_from_the_truth(run, folder, tmp_path):
    """Of the shipped digits they are not; of the same model with known angles of sevens they are, in part or in all."""
    tensors, content = read_tensors(SHIPPED_DIGITS, "model")
    names = ["[red]0", *"123456789"]  # no markup
    for known, words in (
        ((), ROTATION),
        ((1, 7), f"at most (1, 7), or {ROTATION}"),
        (range(10), "known ones at most."),
    ):
        errors = {**content["angle_errors"], "known_angles": [label in known for label in range(10)]}
        path = tmp_path / f"{len(known)}.safetensors"
        write_tensors(path, "model", tensors, {**content, "classes": names, "angle_errors": errors})
        shown = " ".join(run("predict", folder / "zero.png", "--model", path).stdout.split())
        assert words in shown
        assert ("how upright the object was" in shown) == (not known)
        card = " ".join(run("info", path).stdout.replace("│", " ").split())
        assert f"angle error {load(path).card.angle_errors.meaning(names)}" in card
    assert "angle error" not in run("info", "digits-plain").stdout


def test_ink_on_paper_is_read_inverted(run, folder, tmp_path):
    """By a model that knows a dark background only; the note is no part of the JSON."""
    pixels = np.asarray(open_image(folder / "zero.png"))
    Image.fromarray(255 - pixels).save(tmp_path / "paper.png")
    words = ("--model", "digits-upright", "--json")
    both = run("predict", folder / "zero.png", tmp_path / "paper.png", *words)
    expected, found = json.loads(both.stdout)["images"]
    assert (expected["inverted"], found["inverted"]) == (False, True)
    assert "1 of 2 images were inverted" in both.stderr
    assert "trained on images that are bright on dark background" in both.stderr
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-3)
    assert run("predict", folder / "zero.png", *words).stderr == ""


def test_a_model_that_knows_several_backgrounds_inverts_nothing(run, model_file, tmp_path):
    Image.new("L", (28, 28), 255).save(tmp_path / "paper.png")
    result = run("predict", tmp_path / "paper.png", "--model", model_file, "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["images"][0]["inverted"] is False


def test_json_has_null_for_an_undefined_angle(run, model_file, tmp_path):
    Image.new("L", (40, 40), 90).save(tmp_path / "blank.png")
    [blank] = predicted(run, model_file, tmp_path / "blank.png")
    assert blank["angle"] is None
    shown = run("predict", tmp_path / "blank.png", "--model", model_file, "--save", tmp_path / "arrows")
    assert shown.exit_code == 0, shown.output
    assert "–" in shown.stdout


@pytest.mark.parametrize("kind", ["rgb", "palette", "alpha", "sixteen", "bilevel_free", "animated", "exif"])
def test_the_same_picture_in_any_encoding_gives_the_same_answer(run, model_file, folder, digit, kind, tmp_path):
    picture, path = Image.fromarray(digit), tmp_path / "other.png"
    if kind == "rgb":
        picture.convert("RGB").save(path)
    elif kind == "palette":
        picture.convert("P").save(path)
    elif kind == "alpha":
        Image.merge("LA", (Image.new("L", picture.size, 255), picture)).save(path)
    elif kind == "sixteen":
        Image.fromarray(digit.astype(np.uint16) * 257).save(path)
    elif kind == "bilevel_free":
        path = tmp_path / "no_suffix"
        picture.save(path, format="PNG")
    elif kind == "animated":
        path = tmp_path / "other.gif"
        picture.save(path, save_all=True, append_images=[Image.new("L", picture.size)])
    else:
        exif = picture.getexif()
        exif[0x0112] = 6  # to be shown turned clockwise by 90 degrees
        Image.fromarray(np.rot90(digit)).save(path, exif=exif)
    expected, found = predicted(run, model_file, folder / "zero.png", path)
    assert found["label"] == expected["label"]
    assert found["scores"] == pytest.approx(expected["scores"], abs=1e-3)
    assert found["angle"] == pytest.approx(expected["angle"], abs=0.1)


def test_save_writes_an_arrow_for_each_image_and_overwrites_nothing(run, model_file, folder, tmp_path):
    arrows = tmp_path / "arrows"
    for _ in range(2):
        assert run("predict", folder, "--model", model_file, "--save", arrows).exit_code == 0
    names = {"zero-pose.png", "zero-pose-2.png", "zero-pose-3.png", "zero-pose-4.png"}
    assert {path.name for path in arrows.iterdir()} == names | {"turned-pose.png", "turned-pose-2.png"}
    assert open_image(arrows / "zero-pose.png").convert("RGB").getcolors(10**6)


def test_one_bad_image_does_not_stop_the_others(run, model_file, folder):
    (folder / "bad.png").write_bytes(b"not an image")
    result = run("predict", folder, "--model", model_file, "--json")
    assert result.exit_code == 1
    printed = json.loads(result.stdout)
    assert len(printed["images"]) == 3
    [problem] = printed["errors"]
    assert problem["file"].endswith("bad.png")
    assert "is not a readable image" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("missing.png",), 2, "missing.png does not exist"),
        (("empty",), 2, "holds no image"),
        ((), 2, "Missing argument"),
        (("good.png", "--model", "nowhere"), 2, "there is no model 'nowhere'"),
        (("good.png", "--model", "empty"), 2, "holds no model.safetensors"),
        (("good.png", "--model", "good.png"), 1, "not a safetensors file"),
        (("good.png", "--save", "good.png"), 1, "cannot create the folder"),
    ],
)
def test_mistakes_are_one_line_and_an_exit_code(run, model_file, tmp_path, monkeypatch, words, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    Image.new("L", (30, 30)).save("good.png")
    model = () if "--model" in words else ("--model", model_file)
    assert failed_cleanly(run("predict", *words, *model), code, message)


def test_in_a_real_process_standard_output_is_json_alone(model_file, folder):
    command = [sys.executable, "-m", "equicaps.cli.main", "predict", folder, "--model", model_file, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["images"]) == 3


def test_a_network_without_poses_has_neither_angle_nor_agreement(run, folder):
    [found] = predicted(run, "digits-plain", folder / "zero.png")
    assert found["confidence"] > 0
    assert [found[name] for name in ("angle", "agreed_label", "agreement", "agreements")] == [None] * 4
    assert run("predict", folder / "zero.png", "--model", "digits-plain").stdout.count("–") == 2
