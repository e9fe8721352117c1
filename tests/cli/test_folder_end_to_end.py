"""Two hundred images of a user in three classes: trained, predicted, set upright and exported, by commands alone."""

import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from PIL import Image, ImageDraw

from equicaps.images.decode import open_image
from equicaps.images.preparation import ImageFormat, prepare

SHAPES = {
    "flag": ((-8, -16), (-8, 16), (12, 9), (-4, 2), (-4, -16)),
    "hook": ((-12, 14), (-12, -14), (12, -14), (12, -6), (-4, -6), (-4, 14)),
    "tee": ((-15, 14), (15, 14), (15, 7), (4, 7), (4, -15), (-4, -15), (-4, 7), (-15, 7)),
}


def draw(shape, degrees, rng):
    """A bright shape, turned counter-clockwise, on a dark background; smooth, 48x48."""
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    size = rng.uniform(0.85, 1.1)
    points = [(96 + 4 * size * (c * x - s * y), 96 - 4 * size * (s * x + c * y)) for x, y in SHAPES[shape]]
    picture = Image.new("L", (192, 192), rng.randrange(0, 30))
    ImageDraw.Draw(picture).polygon(points, fill=rng.randrange(180, 256))
    return picture.resize((48, 48), Image.Resampling.BOX)


def equicaps(*words, folder):
    """In a process of its own, as a user runs it."""
    command = [sys.executable, "-m", "equicaps.cli.main", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """A folder ``shapes`` of 200 images turned by any angle."""
    here, rng = tmp_path_factory.mktemp("user"), random.Random(0)
    for number in range(200):
        name = list(SHAPES)[number % 3]
        path = here / "shapes" / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(name, rng.uniform(0, 360), rng).save(path)
    return here


def test_a_folder_trains_predicts_uprights_and_exports(workplace):
    here, rng = workplace, random.Random(1)
    trained = equicaps(
        "train", "shapes", "--size", 32, "--steps", 60, "--batch", 32, "--out", "run", "--json", folder=here
    )  # fmt: skip
    assert sorted(trained["classes"]) == sorted(SHAPES)
    assert trained["figures"]["accuracy"] >= 75  # a third would be chance

    (here / "new").mkdir()
    for name in SHAPES:
        for number in range(4):
            picture = draw(name, rng.uniform(0, 360), rng)
            for quarters in (0, 1):
                turned = Image.fromarray(np.rot90(np.asarray(picture), quarters))
                turned.save(here / "new" / f"{name}{number}_{quarters}.png")
    found = equicaps("predict", "new", "--model", "run", "--save", "arrows", "--json", folder=here)
    answers = {entry["file"].removeprefix("new/"): entry for entry in found["images"]}
    assert len(answers) == len(list((here / "arrows").iterdir())) == 24
    right = sum(name.startswith(entry["label"]) for name, entry in answers.items())
    assert right >= 20  # 24 on one machine; a third would be chance
    pairs = [(answers[f"{n}{k}_0.png"], answers[f"{n}{k}_1.png"]) for n in SHAPES for k in range(4)]
    for still, turned in pairs:
        assert turned["label"] == still["label"]
        if still["angle"] is not None:
            assert (turned["angle"] - still["angle"]) % 360 == pytest.approx(90, abs=0.2)
    assert sum(still["angle"] is not None for still, _ in pairs) >= 6

    upright = equicaps("upright", "new", "--model", "run", "--out", "upright", "--json", folder=here)
    assert len(upright["images"]) == 24
    for name in SHAPES:
        if answers[f"{name}0_0.png"]["angle"] is not None:
            a, b = (np.asarray(open_image(here / "upright" / f"{name}0_{k}.png")).astype(int) for k in (0, 1))
            assert np.abs(a - b).max() <= 3

    exported = equicaps("export", "run", "--out", "shapes.onnx", "--images", 100, "--json", folder=here)
    assert exported["holds"]
    session = onnxruntime.InferenceSession(here / "shapes.onnx", providers=["CPUExecutionProvider"])
    classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    images = prepare([here / entry["file"] for entry in found["images"]], ImageFormat(1, 32, 32))
    scores = session.run(["scores"], {"images": images.numpy()})[0]
    for row, entry in zip(scores, found["images"], strict=True):
        assert dict(zip(classes, row.tolist(), strict=True)) == pytest.approx(entry["scores"], abs=1e-3)

    program = Path(__file__).parents[2] / "examples" / "read_onnx.py"
    files = [entry["file"] for entry in found["images"]]
    done = subprocess.run(
        [sys.executable, program, "shapes.onnx", *files], cwd=here, capture_output=True, text=True, check=True
    )
    for line, entry in zip(done.stdout.splitlines(), found["images"], strict=True):
        file, label, confidence, angle = line.split()
        assert (file, label) == (entry["file"], entry["label"])
        assert float(confidence) == pytest.approx(entry["confidence"], abs=0.01)
        if entry["angle"] is not None:
            assert (float(angle) - entry["angle"] + 180) % 360 - 180 == pytest.approx(0, abs=2)
