"""``equicaps predict --out`` as a user sees it."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from commands import failed_cleanly
from PIL import Image
from typer.testing import CliRunner

from equicaps.cli.main import app
from equicaps.data import embedded_digits
from equicaps.inference.batches import BATCH

PROGRAM = """
import time
from equicaps.cli.main import app
from equicaps.inference import PoseModel, parts
parts.PART_ROWS = 32
opened = PoseModel._open
PoseModel._open = lambda self, source: time.sleep(600) if str(source).endswith("080.png") else opened(self, source)
app()
"""
"""Parts of 32 answers, and an image that takes forever to read."""


@pytest.fixture
def digits(tmp_path):
    folder = tmp_path / "digits"
    folder.mkdir()
    for number, digit in enumerate(embedded_digits("test").images[: 4 * BATCH, 0]):
        Image.fromarray((digit * 255).byte().numpy()).save(folder / f"{number:03}.png")
    return folder


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_killed_run_continues_to_the_bytes_of_one_that_was_not(run, model_file, digits, tmp_path):
    """The third part waits for an image that never comes, so there it is killed; the network computes all answers."""
    expected, out = tmp_path / "expected.csv", tmp_path / "answers.csv"
    assert run("predict", *sorted(digits.iterdir()), "--model", model_file, "--out", expected).exit_code == 0
    words = ["predict", *map(str, sorted(digits.iterdir())), "--model", str(model_file), "--out", str(out)]
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, *words])
    parts = tmp_path / "answers.csv.parts"
    try:
        while len(list(parts.glob("0*.jsonl"))) < 2:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    fewer = run(*words[:-4], "extra.png", *words[-4:])
    assert failed_cleanly(fewer, 2, "extra.png does not exist")
    other = run(*words[:1], *words[2:])
    assert failed_cleanly(other, 2, f"{parts} holds parts of other answers: file 1 {digits / '000.png'} there, ")
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}: answers for 128 images, 64 of them found by an earlier run\n"
    assert out.read_bytes() == expected.read_bytes()
    assert not parts.exists()
    assert failed_cleanly(run(*words), 2, "answers.csv already exists: choose another name, or replace it with --force")


def test_two_runs_cannot_write_one_file(run, model_file, digits, tmp_path):
    from equicaps._files import lock_folder

    out = tmp_path / "answers.csv"
    with lock_folder(tmp_path / "answers.csv.parts", wait=False):
        assert failed_cleanly(run("predict", digits, "--model", model_file, "--out", out), 2, "is using")


def test_every_format_has_the_answers_of_json(run, model_file, folder, tmp_path):
    printed = json.loads(run("predict", folder, "--model", model_file, "--json").stdout)["images"]
    assert run("predict", folder, "--model", model_file, "--out", tmp_path / "answers.jsonl").exit_code == 0
    found = rows(tmp_path / "answers.jsonl")
    for row, answer in zip(found, printed, strict=True):
        for name in ("file", "label", "confidence", "angle", "agreed_label", "agreement"):
            assert row[name] == answer[name]
        assert {name: row[f"score_{name}"] for name in "0123456789"} == answer["scores"]


def test_bad_files_are_counted_and_the_exit_code_says_so(run, model_file, folder, tmp_path):
    (folder / "bad.png").write_bytes(b"no image")
    result = run("predict", folder, "--model", model_file, "--out", tmp_path / "answers.jsonl", "--json")
    assert failed_cleanly(result, 1, "error: 1 of 4 images could not be read; the column 'error' says why.")
    assert json.loads(result.stdout).items() >= {"images": 4, "failed": 1}.items()
    assert ["not a readable image" in (row["error"] or "") for row in rows(tmp_path / "answers.jsonl")].count(True) == 1


def test_a_terminal_shows_how_many_images_per_second(model_file, digits, tmp_path):
    words = ["predict", str(digits), "--model", str(model_file), "--out", str(tmp_path / "answers.csv")]
    result = CliRunner().invoke(app, words, env={"FORCE_COLOR": "1", "COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    assert "images/s" in result.stderr
    assert "128/128" in result.stderr


def test_inverted_images_are_noted(run, folder, tmp_path):
    Image.new("L", (28, 28), 255).save(folder / "paper.png")
    result = run("predict", folder, "--model", "digits-upright", "--out", tmp_path / "answers.csv")
    assert result.exit_code == 0, result.output
    assert "1 of 4 images were inverted" in result.stderr


@pytest.mark.parametrize("answers", ["table", "json", "file"])
def test_control_characters_in_names_do_not_reach_the_terminal(run, model_file, folder, tmp_path, answers):
    """Neither those of readable images nor those of others."""
    evil = "\x1b]0;evil\x07\x9b2J\x7f"
    (folder / "zero.png").rename(folder / f"{evil}.png")
    (folder / f"bad{evil}.png").write_bytes(b"no image")
    words = {"table": [], "json": ["--json"], "file": ["--out", tmp_path / f"{evil}.csv"]}[answers]
    result = run("predict", folder, "--model", model_file, *words)
    assert result.exit_code == 1
    assert not set("\x1b\x07\x9b\x7f") & set(result.stdout + result.stderr)
    assert "evil" in result.stdout
    if answers == "json":
        assert any(entry["file"].endswith(f"{evil}.png") for entry in json.loads(result.stdout)["images"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "answers.txt"), "answers.txt must end in one of .csv, .jsonl, .parquet"),
        (("--out", "answers.csv", "--save", "arrows"), "--save draws a picture of every image"),
        (("--out", "answers.csv", "--address", "auto"), "--address is the address of a Ray cluster: add --engine ray"),
        (("--engine", "ray"), "--engine and --address are for answers in a file"),
        (("--out", "answers.csv", "--engine", "spark"), "spark"),
        (("s3://bucket/images",), "s3://bucket/images is read with --out only"),
        (("nowhere.png", "--out", "answers.csv"), "nowhere.png does not exist"),
        (("--out", "good.png.csv"), "good.png.csv is an input and is never overwritten"),
        (("--out", "a.csv", "--engine", "ray", "--address", "127.0.0.1:1"), "no Ray cluster answers at 127.0.0.1:1"),
    ],
    ids=str,
)  # fmt: skip
def test_mistakes_are_one_line_and_leave_nothing_behind(run, model_file, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    Image.new("L", (30, 30)).save("good.png.csv", format="PNG")
    result = run("predict", "good.png.csv", *words, "--model", model_file)
    assert failed_cleanly(result, 2, message)
    assert os.listdir() == ["good.png.csv"]


def test_without_ray_the_extra_is_named(run, model_file, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = run("predict", folder, "--model", model_file, "--out", tmp_path / "answers.csv", "--engine", "ray")
    assert failed_cleanly(result, 1, "pip install 'equicaps[ray]'")
    assert not (tmp_path / "answers.csv.parts").exists()


def test_images_are_read_by_their_addresses(run, model_file, folder, tmp_path):
    pytest.importorskip("pyarrow", reason="addresses need pyarrow: pip install 'equicaps[parquet]'")
    for name, images in (("paths", folder), ("addresses", folder.as_uri())):
        assert run("predict", images, "--model", model_file, "--out", tmp_path / f"{name}.jsonl").exit_code == 0
    local, remote = rows(tmp_path / "paths.jsonl"), rows(tmp_path / "addresses.jsonl")
    assert [row.pop("file") for row in remote] == [f"file://{row.pop('file')}" for row in local]
    assert remote == local
