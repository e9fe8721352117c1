"""``equicaps serve`` as a user starts and ends it."""

import builtins
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from commands import failed_cleanly, save_network
from small_shapes import save_point_network

from equicaps._tensor_files import read_tensors, write_tensors


def test_it_serves_a_checkpoint_until_ctrl_c_and_says_no_more(model_file):
    command = [sys.executable, "-m", "equicaps.cli.main", "serve", "--port", "0", "--model", str(model_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        address = re.search(r"untrained on (http://127\.0\.0\.1:\d+) ", line)[1]
        with urllib.request.urlopen(address, timeout=60) as response:
            assert b"<title>equicaps" in response.read()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 0


def test_a_port_in_use_is_one_line(run, model_file):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = run("serve", "--model", model_file, "--port", port)
    assert failed_cleanly(result, 1, f"port {port} is in use: choose another with --port")


def test_missing_packages_are_one_line(run, model_file, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "uvicorn":
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    for name in [name for name in sys.modules if name.startswith("equicaps.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    assert failed_cleanly(run("serve", "--model", model_file), 1, "pip install 'equicaps[serve]'")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "nowhere"), "there is no model 'nowhere'"),
        (("--port", "70000"), "--port"),
        (("--port", "x"), "--port"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, words, message):
    assert failed_cleanly(run("serve", *words), 2, message)


def test_the_browser_is_opened_on_request(run, model_file, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("equicaps.serve.run", lambda app, on: None)
    for words, count in (((), 0), (("--open",), 1)):
        result = run("serve", "--model", model_file, "--port", 0, *words)
        assert result.exit_code == 0, result.output
        assert len(opened) == count
        assert all(address in result.stdout for address in opened)


@pytest.mark.parametrize(("classes", "compared"), [("0123456789", True), ("abcdefghij", False)])
def test_the_plain_cnn_is_shown_beside_models_of_digits_only(run, model_file, tmp_path, monkeypatch, classes, compared):
    tensors, content = read_tensors(model_file, "model")
    write_tensors(tmp_path / "m.safetensors", "model", tensors, {**content, "classes": list(classes)})
    served = []
    monkeypatch.setattr("equicaps.serve.make_app", served.append)
    monkeypatch.setattr("equicaps.serve.run", lambda app, on: None)
    assert run("serve", "--model", tmp_path / "m.safetensors", "--port", 0).exit_code == 0
    assert [answers.about().plain for answers in served] == [compared]


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """Untrained models under the names of shipped ones."""
    folder = tmp_path_factory.mktemp("shipped") / "weights"
    folder.mkdir()
    presets = {
        "digits": "steerable",
        "digits-paper": "paper",
        "digits-upright": "steerable",
        "digits-plain": "plain_cnn",
    }
    for name, preset in presets.items():
        save_network(folder / f"{name}.safetensors", preset)
    return folder


@pytest.fixture
def described(run, weights, tmp_path, monkeypatch):
    """What the page says of its models, and what the command prints, with these models shipped."""

    def found(*words, shipped=("digits", "digits-upright", "digits-plain", "digits-paper")):
        pages = []
        monkeypatch.setattr("equicaps.inference.model_files.files", lambda package: tmp_path)
        for module in ("equicaps.inference.model_files", "equicaps.cli.serve"):
            monkeypatch.setattr(f"{module}.SHIPPED", shipped)
        monkeypatch.setattr("equicaps.serve.make_app", pages.append)
        monkeypatch.setattr("equicaps.serve.run", lambda app, on: None)
        result = run("serve", "--port", 0, *words)
        assert result.exit_code == 0, result.output
        [about] = [page.about() for page in pages]
        assert about.plain
        return about, result

    shutil.copytree(weights, tmp_path / "weights")
    return found


@pytest.fixture
def offered(described):
    """The models of images that the page offers, and what the command says on standard error."""

    def found(*words, **shipped):
        about, result = described(*words, **shipped)
        return [model.name for model in about.models], result.stderr

    return found


def test_the_page_offers_the_papers_network_beside_ours(offered, model_file):
    """In the order of the page: the first is the one selected. Beside any other model there is none to choose."""
    assert offered() == (["digits", "digits-paper"], "")
    assert offered("--model", "digits-paper") == (["digits-paper", "digits"], "")
    assert offered("--model", "digits-upright") == (["digits-upright"], "")
    assert offered("--model", model_file) == (["untrained"], "")


def test_a_model_that_is_not_shipped_is_not_offered_even_if_the_user_has_a_file_of_that_name(
    offered, model_file, tmp_path, monkeypatch
):
    (tmp_path / "digits-paper").mkdir()
    shutil.copy(model_file, tmp_path / "digits-paper" / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    shipped = ("digits", "digits-plain")
    assert offered(shipped=shipped) == (["digits"], "")
    assert offered("--model", "digits-paper", shipped=shipped) == (["digits-paper"], "")


def test_a_shipped_model_whose_file_is_missing_is_left_out_and_a_damaged_one_with_a_note(offered, tmp_path):
    file = tmp_path / "weights" / "digits-paper.safetensors"
    file.unlink()
    assert offered() == (["digits"], "")
    file.write_bytes(b"nonsense")
    names, note = offered()
    assert names == ["digits"]
    assert re.fullmatch("note: the page is without digits-paper: .* is not a safetensors file.*\n", note)


def test_a_shipped_model_of_other_pictures_is_not_offered(offered, tmp_path):
    file = tmp_path / "weights" / "digits-paper.safetensors"
    tensors, content = read_tensors(file, "model")
    write_tensors(file, "model", tensors, {**content, "frame": 20})
    assert offered() == (["digits"], "")


SHAPES = ("digits", "digits-plain", "digits-paper", "modelnet10")


def test_a_model_of_shapes_has_the_second_tab_and_the_first_keeps_the_shipped_models(described, tmp_path):
    about, result = described("--model", save_point_network(tmp_path / "solids.safetensors"))
    assert about.shapes.name == "solids"
    assert [model.name for model in about.models] == ["digits", "digits-paper"]
    assert re.match(r"solids on http://127\.0\.0\.1:\d+/#shapes \(press Ctrl-C", result.stdout)


def test_the_shipped_model_of_shapes_is_shown_if_its_file_is_there(described, tmp_path, model_file):
    """Beside any model of images, and it can be named."""
    words = ("--model", model_file)
    assert described(*words, shipped=SHAPES)[0].shapes is None
    save_point_network(tmp_path / "weights" / "modelnet10.safetensors")
    about, result = described(*words, shipped=SHAPES)
    assert about.shapes.name == "modelnet10"
    assert "#shapes" not in result.stdout
    assert "modelnet10 on http" in described("--model", "modelnet10", shipped=SHAPES)[1].stdout
    (tmp_path / "weights" / "modelnet10.safetensors").write_bytes(b"nonsense")
    about, result = described(*words, shipped=SHAPES)
    assert about.shapes is None
    assert "note: the page is without modelnet10: " in result.stderr


def test_a_file_of_the_user_with_that_name_is_not_taken_for_the_shipped_one(
    described, model_file, tmp_path, monkeypatch
):
    (tmp_path / "modelnet10").mkdir()
    save_point_network(tmp_path / "modelnet10" / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    assert described("--model", model_file)[0].shapes is None
    assert described("--model", "modelnet10")[0].shapes.name == "modelnet10"  # control
