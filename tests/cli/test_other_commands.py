"""``equicaps audit``, ``info``, ``data``, ``bench`` and ``export`` as a user sees them."""

import importlib.util
import json
import sys
from dataclasses import replace

import pytest
from commands import failed_cleanly, save_network
from PIL import Image
from small_shapes import write_folder

from equicaps import __version__, load
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.cli.data import KNOWN
from equicaps.cli.main import COMMANDS
from equicaps.data import embedded_digits, solid_shapes
from equicaps.data.catalogue import SHAPE_CATALOGUE
from equicaps.errors import FileError
from equicaps.images.decode import open_image
from equicaps.inference import export as exporting

QUICK = ("--images", 12, "--step", 45)


@pytest.fixture
def trained_file(tmp_path):
    """Exact to 1e-4 is promised for trained weights; scores of untrained ones are too large for an absolute limit."""
    return save_network(tmp_path / "trained.safetensors", weights=load("digits-upright").network.state_dict())


def test_a_trained_network_gets_its_certificate(run, trained_file, tmp_path):
    result = run("audit", trained_file, *QUICK, "--out", tmp_path / "audit", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["holds"]
    assert found["failures"] == []
    assert found["exact"]["images"] == 24
    assert 0 < found["exact"]["scores"] < 1e-4  # it rounds: 0 would mean that nothing was turned
    assert len(found["exact_layers"]) == 4
    assert [entry["degrees"] for entry in found["angles"]] == list(range(0, 360, 45))
    assert found["angles"][2]["pose_error_mean"] < 0.1 < found["angles"][1]["pose_error_mean"]
    assert {entry["layer"] for entry in found["layers"]} == {1, 2, 3, 4}
    assert all(entry["equivariance"] < entry["control"] for entry in found["layers"] if entry["degrees"] > 30)
    assert json.loads((tmp_path / "audit" / "audit.json").read_text()) == found
    assert open_image(tmp_path / "audit" / "audit.png").width > 500
    assert failed_cleanly(run("audit", trained_file, *QUICK, "--out", tmp_path / "audit"), 2, "already exists")


def test_the_audit_says_which_images_it_counts_and_reads_ink_on_paper(run, tmp_path):
    """On the cheapest model; that it fails does not matter here."""
    digits = embedded_digits("test").take(slice(0, 60))
    for number, (image, label) in enumerate(zip(digits.images[:, 0], digits.labels.tolist(), strict=True)):
        path = tmp_path / "paper" / str(label) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((255 - image * 255).byte().numpy()).save(path)
    words = ("audit", "digits-plain", "--images", 5, "--step", 180)
    result = run(*words, "--data", tmp_path / "paper")
    shown = " ".join(result.stdout.split())
    assert "answer, 5 + 5 images" in shown
    assert "5 images as given and the same 5 rotated by random angles" in shown
    first = next(line for line in result.stdout.splitlines() if "0°" in line and "%" in line)
    assert float(first.split("│")[2].split("%")[0]) >= 80  # of five digits


def test_without_matplotlib_the_audit_says_so_before_it_measures(run, model_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("equicaps.drawing.importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("equicaps.cli.audit.measure", lambda *given, **options: pytest.fail("it measured"))
    assert failed_cleanly(run("audit", model_file, "--out", tmp_path / "audit"), 1, "pip install 'equicaps[figures]'")


@pytest.mark.parametrize("shipped", [True, False], ids=["digits-plain", "steerable_cnn"])
def test_a_network_without_poses_does_not_get_a_certificate(run, tmp_path, shipped):
    """Control: the same audit rejects an ordinary CNN."""
    plain = "digits-plain" if shipped else save_network(tmp_path / "cnn.safetensors", "steerable_cnn")
    result = run("audit", plain, *QUICK)
    assert failed_cleanly(result, 1, "not exact")
    assert "FAILS" in result.stdout


def test_a_model_that_ignores_mirroring_is_audited_for_it_and_says_so(run, model_file, tmp_path):
    """Untrained, so its scores may be too large for the limit; mirroring must change them as little as rotations."""
    file = save_network(tmp_path / "mirror.safetensors", mirror="ignore")
    assert "mirrored, then rotated" in run("audit", file, *QUICK).stdout
    found = json.loads(run("audit", file, *QUICK, "--json").stdout)
    assert 0 < found["exact_mirrored"]["scores"] < 1e-3
    assert found["exact_mirrored"]["predictions_changed"] == 0
    shown = " ".join(run("info", file).stdout.split())
    assert "156,348 parameters" in shown
    assert "no difference between mirror images" in shown
    assert json.loads(run("info", file, "--json").stdout)["network"]["mirror"] == "ignore"
    assert "mirror" not in run("info", model_file).stdout
    assert "mirrored" not in run("audit", model_file, *QUICK).stdout


def test_the_audit_explains_data_that_do_not_fit(run, model_file, folder, tmp_path):
    for command in ("audit", "export"):
        message = "neither a data set (digits, mnist, galaxies), nor a folder"
        assert failed_cleanly(run(command, model_file, "--data", "nowhere"), 2, message)
    for name, degrees in (("a", (0, 90)), ("b", (180, 270))):
        (tmp_path / "classes" / name).mkdir(parents=True)
        for angle in degrees:
            open_image(folder / "zero.png").rotate(angle).save(tmp_path / "classes" / name / f"{angle}.png")
    assert failed_cleanly(run("audit", model_file, "--data", tmp_path / "classes"), 2, "has the classes a, b, but")


def test_info_shows_the_card(run, model_file):
    shown = run("info", model_file)
    assert shown.exit_code == 0, shown.output
    for text in (
        "tells [digits]",
        "a few digits",
        "accuracy 10",
        "MIT",
        "counter-clockwise",
        "158,004 parameters",
        "any",
    ):
        assert text in shown.stdout
    card = json.loads(run("info", model_file, "--json").stdout)
    assert card["network"] == {
        "preset": "steerable", "parameters": 158_004, "decoder_parameters": 0, "image_size": 32, "in_channels": 1,
        "mirror": "distinguish",
    }  # fmt: skip
    assert len(card["zeros"]) == 10
    assert failed_cleanly(run("info", "nowhere"), 2, "there is no model 'nowhere'")


def test_info_counts_the_decoder_apart_and_tells_the_ground(run):
    shown = run("info", "digits").stdout
    assert "steerable, 158,004 parameters" in shown
    assert "667,392 more parameters" in shown
    assert "bright on dark background" in shown
    card = json.loads(run("info", "digits", "--json").stdout)
    assert card["background"] == "dark"
    facts = card["network"]
    total = sum(parameter.numel() for parameter in load("digits").network.parameters())
    assert facts["parameters"] + facts["decoder_parameters"] == total


def test_data_tells_what_is_where_without_fetching(run, tmp_path, monkeypatch):
    monkeypatch.setenv("EQUICAPS_CACHE", str(tmp_path))
    monkeypatch.setenv("EQUICAPS_OFFLINE", "1")
    monkeypatch.delenv("EQUICAPS_DATA", raising=False)
    shown = run("data")
    assert shown.exit_code == 0, shown.output
    assert "nowhere: equicaps data mnist" in shown.stdout
    listed = {entry["name"]: entry for entry in json.loads(run("data", "--json").stdout)["sets"]}
    assert listed["mnist"]["found"] == {"train": None, "test": None}
    assert all(listed["digits"]["found"].values())
    assert failed_cleanly(run("data", "mnist"), 1, "EQUICAPS_OFFLINE forbids fetching")
    assert failed_cleanly(
        run("data", "minst"), 2, "neither a data set (digits, mnist, mnist_rot, affnist, galaxies, modelnet10) nor"
    )
    for name in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte"):
        (tmp_path / "mnist").mkdir(exist_ok=True)
        (tmp_path / "mnist" / name).touch()
    found = json.loads(run("data", "--json").stdout)["sets"][1]["found"]
    assert found == {"train": None, "test": str(tmp_path / "mnist")}
    sizes = [entry["images"] for entry in json.loads(run("data", "digits", "--json").stdout)]
    assert sizes == [4000, 1000]


def test_data_describes_shapes_too(run, tmp_path, monkeypatch):
    """Those of a folder, and those of a set by its name; what cannot be fetched says how to get it."""
    folder = write_folder(tmp_path / "solids", count=15)
    shown = run("data", folder).stdout.splitlines()
    assert [line.split("(")[1] for line in shown[:2]] == ["'solids ", "'solids "]
    assert "5 classes" in shown[0]
    found = json.loads(run("data", folder, "--json").stdout)
    assert sum(entry["shapes"] for entry in found) == 15
    assert found[0]["classes"] == list(solid_shapes(1).classes)
    few = replace(SHAPE_CATALOGUE["modelnet10"], load=lambda part: solid_shapes({"train": 4, "test": 3}[part]))
    with monkeypatch.context() as patched:
        patched.setitem(KNOWN, "modelnet10", few)
        assert [entry["shapes"] for entry in json.loads(run("data", "modelnet10", "--json").stdout)] == [4, 3]
    monkeypatch.setenv("EQUICAPS_CACHE", str(tmp_path))
    monkeypatch.delenv("EQUICAPS_DATA", raising=False)
    assert failed_cleanly(run("data", "modelnet10"), 1, "docs/data.md says how to pack them")
    assert "modelnet10" in run("data").stdout


def test_data_tells_in_a_sentence_what_is_in_a_folder(run, folder, tmp_path):
    for name, degrees in (("a", (0, 90)), ("b", (180, 270))):
        (tmp_path / "classes" / name).mkdir(parents=True)
        for angle in degrees:
            open_image(folder / "zero.png").rotate(angle).save(tmp_path / "classes" / name / f"{angle}.png")
    *sets, note = run("data", tmp_path / "classes").stdout.splitlines()
    assert [line.split("(")[1] for line in sets] == ["'classes ", "'classes "]
    assert note == "4 grey images in all, 28x28, unchanged"


def test_bench_prints_positive_speeds(run, model_file):
    result = run("bench", model_file, "--batch", 4, "--seconds", 0.02, "--no-onnx", "--json")
    assert result.exit_code == 0, result.output
    speeds = json.loads(result.stdout)["speeds"]
    assert [(row["what"], row["batch"]) for row in speeds] == [
        ("training step", 4), ("inference, PyTorch", 4), ("inference, PyTorch", 1),
    ]  # fmt: skip
    assert all(row["images_per_cpu_second"] > 0 for row in speeds)
    assert "images per CPU-second" in run("bench", "steerable", "--batch", 2, "--seconds", 0.02, "--no-onnx").stdout


@pytest.fixture
def faked(monkeypatch):
    """Export costs seconds and does not trace checked code: a stand-in program, off by so much."""

    def pretend(error):
        monkeypatch.setattr("equicaps.inference.export.to_onnx", lambda network, notes: b"program")
        monkeypatch.setattr("equicaps.inference.export.run_onnx", lambda content: None)
        found = exporting.Comparison(1000, 0, error, 0.0, 0.0, 0.0, (0.0, 0.0))
        monkeypatch.setattr("equicaps.inference.export.compare", lambda network, program, images: found)

    return pretend


def test_an_export_that_differs_is_not_written(run, model_file, tmp_path, faked):
    target = tmp_path / "m.onnx"
    faked(2e-5)
    assert failed_cleanly(run("export", model_file, "--out", target), 1, "differs from the network by more than 1e-05")
    assert not target.exists()
    faked(1e-6)
    made = run("export", model_file, "--out", target)
    assert made.exit_code == 0
    assert "1,000 rotated images of MNIST subset (test, 1,000 digits)" in made.stdout
    assert "not of the model's classes" not in made.stdout
    assert target.read_bytes() == b"program"
    assert failed_cleanly(run("export", model_file, "--out", target), 2, "already exists")
    assert failed_cleanly(run("export", model_file, "--out", tmp_path), 2, "is a folder")
    assert failed_cleanly(run("export", model_file, "--to", "coreml"), 2, "coreml")
    assert failed_cleanly(run("export", model_file, "--out", "/dev/null/m.onnx"), 1, "cannot create the folder")


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_package_is_named_before_an_export_begins(run, model_file, tmp_path, monkeypatch, package):
    """Not even the data are read; an export to torch needs no package."""
    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else find(name))
    words, read = ("export", model_file, "--out", tmp_path / "a"), []

    def refused(*given, **options):
        read.append(given)
        raise FileError("read")

    monkeypatch.setattr("equicaps.cli.export.load_test_split", refused)
    assert failed_cleanly(run(*words), 1, f"ONNX needs {package}: pip install 'equicaps[onnx]'")
    assert not read
    assert failed_cleanly(run(*words, "--to", "torch"), 1, "error: read")


def test_an_export_says_when_its_images_are_of_another_kind(run, model_file, tmp_path, faked):
    tensors, content = read_tensors(model_file, "model")
    write_tensors(tmp_path / "letters.safetensors", "model", tensors, {**content, "classes": list("abcdefghij")})
    faked(1e-6)
    made = run("export", tmp_path / "letters.safetensors", "--out", tmp_path / "letters.onnx")
    assert "these images are not of the model's classes; --data FOLDER" in made.stdout
    words = ("export", tmp_path / "letters.safetensors", "--out", tmp_path / "letters.onnx", "--force", "--json")
    assert json.loads(run(*words).stdout)["data"] == "MNIST subset (test, 1,000 digits)"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "completion" not in result.stdout
    assert f"equicaps {command}" in result.stdout.split("Options")[0].replace("Usage: equicaps", "")


def test_embedded_digits_are_enough_for_the_check_of_an_export():
    assert len(embedded_digits("test")) >= 1000


def test_the_version_is_printed(run):
    assert run("--version").stdout == f"equicaps {__version__}\n"
