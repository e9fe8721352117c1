"""The program in the README prints what the README shows, and the examples run."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from equicaps import load
from equicaps.data import embedded_digits

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str) -> str:
    return subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_readme_program_prints_what_the_readme_shows():
    """Word for word, except for the last digits, which depend on the machine."""
    readme = (ROOT / "README.md").read_text()
    program, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    printed = run("-c", program).splitlines()
    for actual, expected in zip(printed, shown.splitlines(), strict=True):
        (*words, figure), (*expected_words, expected_figure) = actual.split(), expected.split()
        assert words == expected_words
        assert float(figure) == pytest.approx(float(expected_figure), rel=0.1, abs=1e-5)


def test_theorems_hold_for_every_group_with_its_control():
    table = run("examples/theorems.py")
    assert table.count("holds") == 16
    assert "FAILS" not in table


def test_no_rotation_of_space_changes_a_prediction(tmp_path):
    program = ROOT / "examples" / "space.py"
    done = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, check=True)
    rows = dict(re.findall(r"│ (.*?)  +│ (.*?) +│", done.stdout))
    assert rows["predictions changed by rotations"] == "0"
    assert 0 < float(rows["largest change of a score"]) < 1e-4
    assert rows["classified as a chair"] == "12 of 12"
    with Image.open(tmp_path / "space.png") as picture:
        assert picture.width > 500


def test_example_of_a_new_group_is_short_and_names_the_mistake():
    source = (ROOT / "examples" / "your_own_group.py").read_text()
    lines = re.search(r"# --8<-- the group\n(.*?)# --8<-- end", source, re.DOTALL).group(1).strip().splitlines()
    assert len(lines) < 40
    printed = run("examples/your_own_group.py")
    assert "Heisenberg: all laws hold" in printed
    assert "FAIL inverse_undoes" in printed


@pytest.fixture(scope="module")
def read_onnx():
    spec = importlib.util.spec_from_file_location("read_onnx", ROOT / "examples" / "read_onnx.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def framed(height, width):
    """A digit that is cropped, or surrounded by noise."""
    digit = (embedded_digits("test").images[3, 0] * 255).byte().numpy()
    around = np.random.default_rng(0).integers(0, 90, (60, 60), dtype=np.uint8)
    around[16:44, 16:44] = digit
    top, left = (60 - height) // 2, (60 - width) // 2
    return around[top : top + height, left : left + width]


def transparent(pixels):
    alpha = np.linspace(0, 255, pixels.size).reshape(pixels.shape).astype(np.uint8)
    return np.stack((pixels, pixels.T, pixels[::-1], alpha), -1)


def striped(pixels):
    """On red, green and blue stripes, whose median in every channel is black."""
    around = 255 * np.eye(3, dtype=np.uint8)[np.arange(pixels.shape[1]) % 3][None].repeat(len(pixels), 0)
    around[2:-2, 2:-2] = pixels[2:-2, 2:-2, None]
    return around


PICTURES = {
    "32x32": lambda: framed(32, 32),
    "28x28": lambda: framed(28, 28),
    "28x27": lambda: framed(28, 27),
    "31x32": lambda: framed(31, 32),
    "47x33": lambda: framed(47, 33),
    "RGBA": lambda: transparent(framed(40, 40)),
    "dark RGBA": lambda: transparent(framed(40, 40) // 2),
    "ink on paper": lambda: 255 - framed(36, 30) // 2,
    "stripes": lambda: striped(framed(28, 20)),
    "16 bits": lambda: framed(28, 28).astype(np.uint16) * 250,
}


@pytest.mark.parametrize("name", PICTURES)
def test_the_program_without_torch_prepares_images_as_predict_does(read_onnx, tmp_path, name):
    model = load("digits-upright")
    file = tmp_path / "a.png"
    Image.fromarray(PICTURES[name]()).save(file)
    [(_, expected)] = model.predict_files([file])
    sizes = (1, model.card.frame, model.network.image_size)
    prepared = torch.from_numpy(read_onnx.prepare(str(file), *sizes, model.card.background)[None])
    with torch.no_grad():
        scores = model.network(prepared).scores[0].tolist()
    assert scores == pytest.approx(list(expected.scores.values()), abs=1e-3)
    with torch.no_grad():  # control: another picture has other scores
        moved = model.network(prepared.roll(1, -1)).scores[0].tolist()
    assert moved != pytest.approx(list(expected.scores.values()), abs=1e-3)


def test_the_demo_changes_no_prediction_and_draws(tmp_path):
    printed = subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    [row] = [line for line in printed.splitlines() if "predictions changed" in line]
    assert re.search(r"\b0\b", row.split("degrees")[1])
    with Image.open(tmp_path / "demo.png") as picture:
        assert min(picture.size) > 500
