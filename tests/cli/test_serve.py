"""``equicaps serve`` as a user starts and ends it."""

import builtins
import re
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest
from commands import failed_cleanly

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
