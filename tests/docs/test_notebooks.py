"""The notebooks run from the first cell to the last, and assert what they claim."""

import warnings
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def run(notebook, folder):
    """Run a notebook in a kernel of its own, as a user does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own; those of the notebook appear in its outputs
        return NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": folder}}
        ).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_pictures_without_a_warning(path, tmp_path):
    done = run(nbformat.read(path, as_version=4), tmp_path)
    outputs = [output for cell in done.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 2
    assert [output["text"] for output in outputs if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_outputs(path):
    """The site makes them from the current weights; outputs would only clutter a change."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)
    assert any("assert " in cell.source for cell in code)


def test_there_are_two():
    """Guard: the tests above are not empty."""
    assert len(NOTEBOOKS) >= 2


def test_a_cell_that_fails_is_noticed(tmp_path):
    """Control."""
    cells = [nbformat.v4.new_code_cell("x = 1"), nbformat.v4.new_code_cell("assert x == 2")]
    with pytest.raises(CellExecutionError, match="AssertionError"):
        run(nbformat.v4.new_notebook(cells=cells), tmp_path)
