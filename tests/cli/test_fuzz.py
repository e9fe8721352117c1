"""Whatever bytes and words come: an answer or one line, never a stack trace."""

import io
import json

import numpy as np
import pytest
from commands import failed_cleanly
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from equicaps.cli.main import app
from equicaps.errors import FileError
from equicaps.images.decode import open_image, read_pixels
from equicaps.inference import load

BUDGET = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM")


def image_bytes(kind):
    file = io.BytesIO()
    pixels = np.random.default_rng(0).integers(0, 256, (24, 17, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, format=kind)
    return file.getvalue()


IMAGES = {kind: image_bytes(kind) for kind in FORMATS}


@pytest.mark.parametrize("kind", FORMATS)
def test_whole_images_are_read(tmp_path, kind):
    """Guard: the attacks do not fail by refusing everything."""
    (tmp_path / "image").write_bytes(IMAGES[kind])
    assert read_pixels(tmp_path / "image").shape == (3, 24, 17)
    assert open_image(tmp_path / "image").size == (17, 24)


def rewritten(original, change):
    """The same file with another description and a header that fits."""
    length = int.from_bytes(original[:8], "little")
    header = json.loads(original[8 : 8 + length])
    change(header["__metadata__"])
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + original[8 + length :]


@BUDGET
@given(
    key=st.sampled_from(["format", "version", "content", "checksum"]),
    value=st.one_of(
        st.none(), st.text(max_size=20), st.sampled_from(["[]", "{}", "1", "equicaps checkpoint", "-1", "²"])
    ),
)
def test_strange_descriptions_are_refused(tmp_path, model_file, key, value):
    def change(metadata):
        metadata.pop(key)
        if value is not None:
            metadata[key] = value

    path = tmp_path / "model.safetensors"
    content = rewritten(model_file.read_bytes(), change)
    path.write_bytes(content)
    if key == "version" and value == "1":
        load(path)
        return
    with pytest.raises(FileError, match=r"model\.safetensors"):
        load(path)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    "change",
    [
        {"classes": ["a"]}, {"classes": 3}, {"zeros": [1.0]}, {"zeros": None}, {"config": {}}, {"config": []},
        {"config": {"model": {"preset": "huge"}}}, {"figures": 3}, {"frame": "large"}, {"frame": 0}, {"frame": 2.5},
        {"zeros": ["a"] * 10}, {"task": 3}, {"figures": {"accuracy": "high"}}, {"name": "../x/evil"},
        {"name": "/tmp/evil"}, {"name": "a\\b"}, {"name": ".."}, {"name": ""}, {"name": "a\0"}, {"task": "\x1b[2J"},
        {"licence": "\x9b2J"}, {"data": "\r"}, {"classes": [*"012345678", "\x1b"]}, {"figures": {"\x07": 1.0}},
        {"name": "\udcff"}, {"background": "green"}, {"background": 1},
    ],
    ids=str,
)  # fmt: skip
def test_cards_that_do_not_fit_their_network_are_refused(tmp_path, model_file, change):
    """With a right checksum: somebody wrote it that way."""
    from equicaps._tensor_files import read_tensors, write_tensors

    tensors, content = read_tensors(model_file, "model")
    path = tmp_path / "model.safetensors"
    write_tensors(path, "model", tensors, {**content, **change})
    result = CliRunner().invoke(app, ["info", str(path)])
    assert failed_cleanly(result, 1, "model.safetensors")


words = st.lists(
    st.one_of(
        st.sampled_from(
            ["predict", "upright", "audit", "export", "info", "data", "--json", "--model", "--out", "--force", "--to",
             "onnx", "--images", "0", "-1", "nan", "1e9", "--tolerance", "--step", "--save", "", ".", "/", "digits!",
             "--help", "[red]", "\x00", "--batch", "\udcff", "--engine", "ray", "--address", "--workers", "a.csv",
             "s3://\x00"]
        ),
        st.sampled_from(
            ["digits", "--decay", "--epochs", "--minutes", "--steps", "--device", "--seed", "--spread", "--save-every",
             "--upright", "--rate", "--clip", "--ema", "--resume", "inf", "-inf", "0.5", "2", "meta", str(2**70)]
        ),
        st.text(max_size=8),
    ),
    max_size=5,
)  # fmt: skip


@settings(BUDGET, max_examples=25)
@given(
    command=st.sampled_from(["predict", "upright", "audit", "export", "info", "data", "bench", "serve", "train"]),
    words=words,
)
def test_any_words_end_with_an_exit_code(tmp_path, monkeypatch, command, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EQUICAPS_OFFLINE", "1")
    monkeypatch.setattr("equicaps.PoseModel.predict_files", lambda *arguments, **options: [])
    for name in ("predict", "upright"):  # no real work: "/" is a folder with images somewhere
        monkeypatch.setattr(f"equicaps.cli.{name}.find_images", lambda *arguments, **options: [])
    monkeypatch.setattr("equicaps.cli.predict_to_file.iterate_images", lambda paths: iter(()))
    monkeypatch.setattr("equicaps.serve.run", lambda app, on: None)
    for place in (
        "export.export_model",
        "audit.measure",
        "bench.measure",
        "data.load_folder",
        "train.run",
    ):
        monkeypatch.setattr(f"equicaps.cli.{place}", refuse)
    monkeypatch.setattr("equicaps.data.by_name.load_folder", refuse)
    result = CliRunner().invoke(app, [command, *words])
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exc_info)


NUMBERS = ("minutes", "epochs", "steps", "seed", "batch", "rate", "decay", "clip", "ema", "consistency", "spread",
           "reconstruction", "size", "save-every", "processes", "device", "preset")  # fmt: skip
values = st.sampled_from(["nan", "inf", "-inf", "-1", "0", "0.5", "2", "33", "1e300", str(2**70), "meta", "cpu", ""])


@settings(BUDGET, max_examples=25)
@given(options=st.dictionaries(st.sampled_from(NUMBERS), values, max_size=3))
def test_no_number_makes_a_training_fail_with_a_trace(tmp_path, monkeypatch, options):
    """It is refused, or would start."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("equicaps.cli.train.run", refuse)
    monkeypatch.setattr("equicaps.cli.train.launch", refuse)
    result = CliRunner().invoke(app, ["train", "digits", *(f"--{name}={value}" for name, value in options.items())])
    assert isinstance(result.exception, SystemExit), (options, result.exc_info)
    assert result.exit_code == (1 if "not here" in result.stderr else 2)
    assert not any(value in ("nan", "-inf", "-1", "meta") for value in options.values()) or result.exit_code == 2


def refuse(*arguments, **options):
    from equicaps.errors import TrainingError

    raise TrainingError("not here")
