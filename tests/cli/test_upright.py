"""``equicaps upright`` as a user sees it: results, and what it must never do."""

import json

import numpy as np
import pytest
from commands import failed_cleanly
from PIL import Image, ImageOps

from equicaps.cli.upright import _small
from equicaps.images.decode import open_image
from equicaps.inference.prediction import Answer


@pytest.fixture
def angle(monkeypatch):
    """Let every image be turned by this much."""

    def pretend(degrees):
        answer = Answer("7", 1.0, degrees, "7", 1.0, {}, {})
        monkeypatch.setattr("equicaps.PoseModel.predict_files", lambda model, files: ((file, answer) for file in files))

    return pretend


PICTURES = {
    "L": lambda a: Image.fromarray(a),
    "RGB": lambda a: Image.fromarray(np.stack((a, a.T, a[::-1]), -1)),
    "RGBA": lambda a: Image.fromarray(np.stack((a, a.T, a[::-1], a), -1)),
    "I;16": lambda a: Image.fromarray(a.astype(np.uint16) * 201),
    "P": lambda a: Image.fromarray(a).quantize(16),
    "1": lambda a: Image.fromarray(a).convert("1"),
}


@pytest.mark.parametrize("mode", PICTURES)
@pytest.mark.parametrize("degrees", [0.4, 89.6, -179.5, 270.0])
def test_near_multiples_of_90_the_pixels_are_moved_and_nothing_else(run, model_file, angle, tmp_path, mode, degrees):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 31), dtype=np.uint8)
    original = PICTURES[mode](pixels if mode in ("L", "I;16", "P", "1") else pixels[:, :20])
    original.save(tmp_path / "a.png")
    angle(degrees)
    result = run("upright", tmp_path / "a.png", "--out", tmp_path / "out", "--model", model_file)
    assert result.exit_code == 0, result.output
    assert "1 of 1 images, 1 of them by whole quarter turns, which lose nothing; without" in result.stdout
    made = open_image(tmp_path / "out" / "a.png")
    assert made.mode == mode
    expected = np.rot90(np.asarray(original.convert("RGBA") if mode == "P" else original), -round(degrees / 90))
    actual = np.asarray(made.convert("RGBA") if mode == "P" else made)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("mode", PICTURES)
def test_at_other_angles_mode_and_size_stay(run, model_file, angle, tmp_path, mode, digit):
    PICTURES[mode](digit).save(tmp_path / "a.png")
    before = (tmp_path / "a.png").read_bytes()
    angle(100.0)
    result = run("upright", tmp_path / "a.png", "--out", tmp_path / "out", "--model", model_file, "--json")
    assert result.exit_code == 0, result.output
    [entry] = json.loads(result.stdout)["images"]
    assert entry["rotated_by"] == -100
    assert not entry["lossless"]
    made = open_image(tmp_path / "out" / "a.png")
    assert made.mode == mode
    assert made.size == (28, 28)
    assert (tmp_path / "a.png").read_bytes() == before


def test_images_without_a_pose_are_counted_and_left_as_they_are(run, model_file, folder, angle, tmp_path):
    angle(None)
    result = run("upright", folder / "turned.png", "--out", tmp_path / "out", "--model", model_file)
    assert "0 of 1 images" in result.stdout
    assert "without a pose and copied unchanged: 1;" in result.stdout
    np.testing.assert_array_equal(
        np.asarray(open_image(tmp_path / "out" / "turned.png")), np.asarray(open_image(folder / "turned.png"))
    )
    angle(90.0)
    result = run("upright", folder / "turned.png", "--out", tmp_path / "again", "--model", model_file)
    assert "1 of 1 images" in result.stdout
    assert "without a pose and copied unchanged: 0;" in result.stdout


@pytest.mark.parametrize(("options", "hint"), [((), True), (("--expand",), False)])
def test_upright_says_how_to_keep_the_corners(run, model_file, folder, angle, tmp_path, options, hint):
    angle(30.0)
    result = run("upright", folder / "turned.png", "--out", tmp_path / "out", "--model", model_file, *options)
    assert ("corners may be cut off, --expand keeps them" in result.stdout) == hint


def test_quarter_turns_only_and_expand(run, model_file, angle, tmp_path, digit):
    Image.fromarray(digit).save(tmp_path / "a.png")
    angle(120.0)
    common = ("upright", tmp_path / "a.png", "--model", model_file)
    assert run(*common, "--out", tmp_path / "quarters", "--quarter-turns").exit_code == 0
    np.testing.assert_array_equal(np.asarray(open_image(tmp_path / "quarters" / "a.png")), np.rot90(digit, -1))
    assert run(*common, "--out", tmp_path / "large", "--expand").exit_code == 0
    assert open_image(tmp_path / "large" / "a.png").width > 28


def test_an_image_and_its_quarter_turn_become_the_same(run, model_file, folder, tmp_path):
    """With the model's own angles."""
    result = run("upright", folder, "--out", tmp_path / "out", "--model", model_file, "--json")
    assert result.exit_code == 0, result.output
    a, b = (np.asarray(open_image(tmp_path / "out" / f"{name}.png")).astype(int) for name in ("zero", "turned"))
    assert np.abs(a - b).max() <= 1
    assert (tmp_path / "out" / "more" / "zero.png").exists()  # folders are kept
    assert open_image(tmp_path / "out" / "contact_sheet.png").width > 200
    entries = {entry["file"].split("/")[-1]: entry for entry in json.loads(result.stdout)["images"]}
    assert not np.array_equal(a, np.asarray(open_image(folder / "zero.png"))) or entries["zero.png"]["lossless"]


def test_ink_on_paper_is_set_upright_by_an_inverted_reading_and_stays_as_bright(run, folder, tmp_path):
    paper = ImageOps.invert(open_image(folder / "turned.png"))
    paper.save(tmp_path / "paper.png")
    words = ("upright", tmp_path / "paper.png", "--quarter-turns", "--model", "digits-upright")
    result = run(*words, "--out", tmp_path / "right", "--json")
    assert "1 of 1 images were inverted" in result.stderr
    [entry] = json.loads(result.stdout)["images"]
    assert entry["inverted"] is True
    assert entry["rotated_by"] == -90
    made = np.asarray(open_image(tmp_path / "right" / "paper.png"))
    np.testing.assert_array_equal(made, np.rot90(np.asarray(paper), -1))


def test_results_are_not_overwritten_unless_forced(run, model_file, folder, tmp_path):
    words = ("upright", folder / "zero.png", "--out", tmp_path / "out", "--model", model_file)
    assert run(*words).exit_code == 0
    assert failed_cleanly(run(*words), 2, "already exists")
    (tmp_path / "out" / "contact_sheet.png").unlink()
    assert failed_cleanly(run(*words), 2, "zero.png already exists")
    assert run(*words, "--force").exit_code == 0


@pytest.mark.parametrize("there", ["zero.png", "more/zero.tiff"])
def test_nothing_is_written_when_one_result_is_already_there(run, model_file, folder, tmp_path, there):
    (tmp_path / "out" / "more").mkdir(parents=True)
    (tmp_path / "out" / there).touch()
    words = ("upright", folder, "--out", tmp_path / "out", "--model", model_file)
    assert failed_cleanly(run(*words), 2, f"{there} already exists")
    assert [path for path in (tmp_path / "out").rglob("*") if path.is_file()] == [tmp_path / "out" / there]


def test_two_images_of_one_name_are_numbered(run, model_file, folder, tmp_path):
    files = (folder / "zero.png", folder / "more" / "zero.bmp")
    assert run("upright", *files, "--out", tmp_path / "out", "--model", model_file).exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"zero.png", "zero-2.png", "contact_sheet.png"}


def test_inputs_are_never_overwritten(run, model_file, folder):
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    for words in ((folder, "--out", folder), (folder / "zero.png", "--out", folder)):
        assert failed_cleanly(
            run("upright", *words, "--model", model_file, "--force"), 2, "is the folder of the inputs"
        )
    inner = (folder, "--out", folder / "more")
    assert failed_cleanly(run("upright", *inner, "--model", model_file, "--force"), 2, "inside")
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before


def test_impossible_outputs_are_explained(run, model_file, folder):
    common = ("--model", model_file)
    assert failed_cleanly(run("upright", folder, "--out", folder / "zero.png", *common), 2, "is a file")
    assert failed_cleanly(run("upright", folder, "--out", "/dev/null/x", *common), 1, "cannot create the folder")
    assert failed_cleanly(run("upright", folder, "--out", "/proc/x", *common), 1, "cannot create the folder")
    assert failed_cleanly(run("upright", folder, *common), 2, "--out")


def test_an_image_that_is_gone_before_it_is_rotated_is_reported_and_the_others_are_written(
    run, model_file, tmp_path, monkeypatch
):
    for name in ("a", "b"):
        Image.new("L", (20, 20), 90).save(tmp_path / f"{name}.png")
    answer = Answer("7", 1.0, 90.0, "7", 1.0, {}, {})

    def answers(model, files):
        for file in files:
            if file.name == "a.png":
                file.unlink()
            yield file, answer

    monkeypatch.setattr("equicaps.PoseModel.predict_files", answers)
    result = run("upright", tmp_path, "--out", tmp_path.parent / "upright", "--model", model_file)
    assert result.exit_code == 1
    assert "a.png" in result.stderr
    assert "Traceback" not in result.output
    assert (tmp_path.parent / "upright" / "b.png").exists()


def test_a_long_picture_that_would_become_a_huge_square_is_refused_by_name(run, model_file, angle, tmp_path):
    Image.new("L", (60_000, 10), 90).save(tmp_path / "long.png")
    angle(45.0)
    given = ("upright", tmp_path / "long.png", "--out", tmp_path / "out", "--model", model_file)
    result = run(*given, "--expand")
    assert result.exit_code == 1
    assert "long.png: a picture of 60000x10 pixels becomes one of" in result.stderr
    assert run(*given).exit_code == 0  # control


def test_no_name_of_a_folder_reaches_the_terminal_raw(run, model_file, angle, tmp_path):
    Image.new("L", (20, 20), 90).save(tmp_path / "a.png")
    angle(0.0)
    result = run("upright", tmp_path / "a.png", "--out", tmp_path / "\x1b[2Jout", "--model", model_file)
    assert result.exit_code == 0
    assert "\\x1b[2Jout" in result.stdout


def test_pictures_of_16_bits_are_small_on_the_contact_sheet():
    picture = Image.fromarray(np.arange(10**6, dtype=np.uint16).reshape(1000, 1000))
    assert max(_small(picture).size) == 256
    assert max(_small(picture.convert("L")).size) == 256
