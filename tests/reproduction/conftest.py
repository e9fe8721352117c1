"""One quick run of everything with as few steps and digits as possible, shared by the tests of this folder."""

import json
import os
from pathlib import Path

import jaxtyping
import pytest
from typer.testing import CliRunner

from equicaps._files import lock_folder
from equicaps.training import zeros

with jaxtyping.install_import_hook("reproduction", "beartype.beartype"):
    from reproduction import exactness, protocols, trainings
    from reproduction.__main__ import app


@pytest.fixture(scope="session")
def quick(tmp_path_factory) -> Path:
    """The folder of ``python -m reproduction all --quick``: 1 step, 40 digits, 4 angles. One worker makes it."""
    place = tmp_path_factory.getbasetemp()
    shared = (place.parent if "PYTEST_XDIST_WORKER" in os.environ else place) / "reproduce"
    shared.mkdir(exist_ok=True)
    with lock_folder(shared, wait=True):
        if not (shared / "done").exists():
            run_everything(shared / "quick")
            (shared / "done").touch()
    return shared / "quick"


def run_everything(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainings, "QUICK_STEPS", 1)
        patch.setattr(trainings, "QUICK_IMAGES", 40)
        patch.setattr(protocols, "QUICK_EVERY", 25)
        patch.setattr(exactness, "STEP", 90)
        patch.setattr(zeros, "ENOUGH", 2)  # images of each class in which symmetries are looked for
        done = CliRunner().invoke(app, ["all", "--quick", "--results", str(folder)])
    assert done.exit_code == 0, done.output


@pytest.fixture
def record(quick):
    """The content of one file of that run."""
    return lambda name: json.loads((quick / f"{name}.json").read_text())
