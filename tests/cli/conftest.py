"""A model and images for the commands. The network is untrained: its labels mean nothing, its guarantees hold."""

import numpy as np
import pytest
from commands import save_network
from PIL import Image
from typer.testing import CliRunner

from equicaps.cli.main import app
from equicaps.data import embedded_digits


@pytest.fixture(scope="session")
def model_file(tmp_path_factory):
    return save_network(tmp_path_factory.mktemp("model") / "untrained.safetensors")


@pytest.fixture(scope="session")
def digit():
    """One digit as bytes, 28x28."""
    return (embedded_digits("test").images[3, 0] * 255).round().byte().numpy()


@pytest.fixture
def folder(tmp_path, digit):
    """Three readable images, one of them in a folder of its own."""
    images = tmp_path / "images"
    (images / "more").mkdir(parents=True)
    Image.fromarray(digit).save(images / "zero.png")
    Image.fromarray(np.rot90(digit)).save(images / "turned.png")
    Image.fromarray(digit).save(images / "more" / "zero.bmp")
    return images


@pytest.fixture
def run():
    def invoke(*words):
        return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "200"})

    return invoke
