"""Any number of images, in one file: killed at any moment, continued, and never twice."""

import itertools
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from commands import save_network
from PIL import Image
from small_shapes import point_model

from equicaps import load
from equicaps.data import embedded_digits
from equicaps.errors import DamagedFileError, UsageError
from equicaps.inference import Answer, parts
from equicaps.inference.batches import BATCH
from equicaps.inference.rows import as_row
from equicaps.inference.to_file import Outcome, on_this_machine, predict_to_file

IMAGES = [f"{number}.png" for number in range(4 * BATCH + 5)]


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("model") / "untrained.safetensors")


@pytest.fixture(scope="module")
def model(model_file):
    return load(model_file)


@pytest.fixture
def folder(tmp_path):
    """Some digits, and three files among them that cannot be read."""
    images = tmp_path / "images"
    images.mkdir()
    for number, digit in enumerate(embedded_digits("test").images[: 2 * BATCH, 0]):
        Image.fromarray((digit * 255).byte().numpy()).save(images / f"{number:03}.png")
    (images / "010.png").write_bytes(b"no image")
    (images / "040.png").write_bytes((images / "041.png").read_bytes()[:60])
    (images / "lost.png").symlink_to(images / "nowhere")
    return images


class Cheap:
    """An engine that computes nothing and remembers what it was asked for, so that many runs take no time."""

    def __init__(self):
        self.asked = []

    def __call__(self, model, files):
        for name in files:
            self.asked.append(name)
            failure = OSError("broken") if name.startswith("3") else None
            yield as_row(name, failure or Answer(name, 0.5, None, None, None, {}, None), model.classes)


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART_ROWS", BATCH)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def killed_at(moment, watched, work):
    """Whether a copy of this process is killed when it is about to change its files for the ``moment``-th time."""
    child = os.fork()
    if child == 0:
        counter = itertools.count(1)

        def audit(event, arguments):
            changes = event in ("os.rename", "os.remove", "os.rmdir", "os.mkdir")
            creates = event == "open" and isinstance(arguments[1], str) and "w" in arguments[1]
            here = (changes or creates) and str(watched) in str(arguments[0])
            if here and next(counter) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(audit)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.usefixtures("small_parts")
def test_killed_at_any_moment_it_continues_to_the_same_bytes_and_computes_nothing_twice(model, tmp_path):
    """Every change of a file is such a moment: creating, renaming or removing it."""
    expected = tmp_path / "expected.csv"
    assert predict_to_file(model, IMAGES, expected, engine=Cheap()) == Outcome(len(IMAGES), 11, 0, 0)
    found = []
    for moment in itertools.count(1):
        out = tmp_path / f"{moment}" / "answers.csv"
        out.parent.mkdir()
        if not killed_at(moment, out.parent, lambda to=out: predict_to_file(model, IMAGES, to, engine=Cheap())):
            break
        engine, finished = Cheap(), out.exists()
        outcome = predict_to_file(model, IMAGES, out, engine=engine)
        assert outcome[:3] == (len(IMAGES), 11, 0)
        assert engine.asked == IMAGES[outcome.found :]
        assert out.read_bytes() == expected.read_bytes()
        assert os.listdir(out.parent) == ["answers.csv"]
        found.append(len(IMAGES) if finished else outcome.found)
    assert found == sorted(found)
    assert set(found) == {0, BATCH, 2 * BATCH, 3 * BATCH, 4 * BATCH, len(IMAGES)}  # guard: it was killed everywhere
    assert out.read_bytes() == expected.read_bytes()  # of the run that was not killed


@pytest.mark.usefixtures("small_parts")
def test_what_differs_from_the_parts_is_said_and_replaced_only_on_demand(model, tmp_path):
    out = tmp_path / "answers.jsonl"

    def interrupted(model, images):
        yield from itertools.islice(Cheap()(model, images), 2 * BATCH)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_to_file(model, IMAGES, out, engine=interrupted)
    other = load("digits-upright")
    for changed, message in (
        ((model, IMAGES[:-1]), r"file 133 132\.png there, none now\."),
        ((model, [*IMAGES, "new.png"]), r"file 134 none there, new\.png now\."),
        ((model, ["x.png", *IMAGES[1:]]), r"file 1 0\.png there, x\.png now\."),
        (
            (other, IMAGES),
            r"other answers: model untrained \(\w{32}\) there, digits-upright \(\w{32}\) now\. Run that command again",
        ),
    ):
        with pytest.raises(UsageError, match=message):
            predict_to_file(*changed, out, engine=Cheap())
    assert predict_to_file(model, IMAGES, out, engine=Cheap()).found == 2 * BATCH  # all of them left it as it was
    with pytest.raises(KeyboardInterrupt):
        predict_to_file(model, IMAGES, out, engine=interrupted)
    assert predict_to_file(model, IMAGES[:3], out, engine=Cheap(), force=True) == Outcome(3, 0, 0, 0)
    assert [row["file"] for row in rows(out)] == IMAGES[:3]


def test_a_missing_part_and_an_engine_that_stops_early_are_noticed(model, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "PART_ROWS", BATCH)
    out = tmp_path / "answers.csv"

    def lazy(model, images):
        return itertools.islice(Cheap()(model, images), 3 * BATCH)

    with pytest.raises(DamagedFileError, match="holds 96 answers, but there are 133 files to read"):
        predict_to_file(model, IMAGES, out, engine=lazy)
    assert not out.exists()
    next((tmp_path / "answers.csv.parts").glob("000000000032-*")).unlink()
    with pytest.raises(DamagedFileError, match="lacks a part"):
        predict_to_file(model, IMAGES, out, engine=Cheap())


def test_a_part_is_finished_after_some_time(model, tmp_path, monkeypatch):
    """Large images take long, and nobody wants to lose an hour."""
    monkeypatch.setattr(parts, "PART_SECONDS", 0.0)
    seen = set()
    predict_to_file(
        model, IMAGES, tmp_path / "answers.csv", engine=Cheap(),
        watch=lambda done, images: seen.update(path.name[-12:-6] for path in tmp_path.glob("*/0*.jsonl")),
    )  # fmt: skip
    assert seen == {"000032", "000064", "000096", "000128"}


def test_files_of_others_in_the_folder_of_parts_survive(model, tmp_path):
    mine = tmp_path / "answers.csv.parts" / "mine.txt"
    mine.parent.mkdir()
    mine.touch()
    predict_to_file(model, IMAGES, tmp_path / "answers.csv", engine=Cheap())
    assert mine.exists()
    assert not list(mine.parent.glob("*.json*"))


def test_the_answers_are_those_of_predict_files_and_bad_files_have_their_reason(model, folder, tmp_path):
    paths = [folder / f"{number:03}.png" for number in range(2 * BATCH)] + [folder / "lost.png"]
    seen = []
    outcome = predict_to_file(
        model, map(str, paths), tmp_path / "answers.jsonl", watch=lambda *progress: seen.append(progress)
    )
    assert outcome == Outcome(2 * BATCH + 1, 3, 0, 0)
    assert seen == [(number, 2 * BATCH + 1) for number in range(2 * BATCH + 2)]
    found = rows(tmp_path / "answers.jsonl")
    assert found == [as_row(str(path), answer, model.classes) for path, answer in model.predict_files(paths)]
    reasons = {row["file"][-8:]: row["error"] for row in found if row["error"]}
    assert reasons.keys() == {"/010.png", "/040.png", "lost.png"}
    assert "not a readable image" in reasons["/010.png"]
    assert "truncated" in reasons["/040.png"]
    assert "No such file" in reasons["lost.png"]
    assert {row["label"] for row in found} > {None}


def test_the_network_answers_before_the_last_file_is_read(model, folder):
    """Decoding runs ahead, but only by two batches and by the one that is computed."""
    taken = []

    def many():
        for number in range(20 * BATCH):
            taken.append(number)
            yield str(folder / f"{number % BATCH:03}.png")

    answers = on_this_machine(model, many())
    next(answers)
    assert len(taken) == 3 * BATCH
    for _ in range(BATCH):
        next(answers)
    assert len(taken) == 4 * BATCH


def test_shapes_are_read_a_batch_at_a_time(tmp_path):
    """Each has its row, and the reason if it cannot be read; names stay as they were given."""
    model, cloud = point_model(), f"{tmp_path}/./cloud.npy"
    np.save(cloud, np.random.default_rng(0).normal(size=(40, 3)))
    (tmp_path / "broken.ply").write_bytes(b"ply")
    names, taken = [cloud, f"{tmp_path}/broken.ply"] * BATCH, []
    found = on_this_machine(model, (taken.append(name) or name for name in names))
    first = next(found)
    assert len(taken) == BATCH
    rows = [first, *found]
    assert [row["file"] for row in rows] == names
    expected = model.predict(cloud)
    assert {row["label"] for row in rows} == {*expected.names, None}
    assert rows[0]["confidence"] == pytest.approx(float(expected.confidence), abs=1e-5)
    assert "broken.ply" in rows[1]["error"]
    assert rows[0]["error"] is None


MEASURE = """
import sys
from pathlib import Path
from equicaps import load
from equicaps.inference.to_file import predict_to_file

def peak():  # of this program alone: resource.getrusage also counts what the process was before
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024

model, folder, out = load(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
for count in (200, 1500):
    names = (str(folder / f"{number % 4}.png") for number in range(count))
    assert predict_to_file(model, names, out / f"{count}.csv").files == count
    print(peak())
names = (str(folder / "photo.png") for _ in range(2))
assert predict_to_file(model, names, out / "photos.csv").failed == 0
print(peak())
"""


def test_memory_does_not_grow_with_the_number_of_images(model_file, tmp_path):
    """1,300 more images, 330 MB of pixels, must fit into 32 MB; then photographs of 49 megapixels into 1.5 GB."""
    rng = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(rng.integers(0, 256, (256, 256), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    Image.new("RGBA", (8100, 6100), (200, 100, 0, 100)).save(tmp_path / "photo.png")
    command = [sys.executable, "-c", MEASURE, model_file, tmp_path, tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    few, many, photos = map(float, done.stdout.split())
    assert many - few < 32
    assert photos < 1500
