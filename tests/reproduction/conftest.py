"""One quick run of everything with as few steps and digits as possible, shared by the tests of this folder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from equicaps.cli.main import app
from reproduction import exactness, protocols, trainings


@pytest.fixture(scope="session")
def quick(tmp_path_factory) -> Path:
    """The folder of ``equicaps reproduce all --quick``: 1 step, 40 digits, 4 angles."""
    folder = tmp_path_factory.mktemp("reproduce") / "quick"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainings, "QUICK_STEPS", 1)
        patch.setattr(trainings, "QUICK_IMAGES", 40)
        patch.setattr(protocols, "QUICK_EVERY", 25)
        patch.setattr(exactness, "STEP", 90)
        patch.setattr("torch.set_num_threads", lambda count: None)
        done = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--results", str(folder)])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def record(quick):
    """The content of one file of that run."""
    return lambda name: json.loads((quick / f"{name}.json").read_text())
