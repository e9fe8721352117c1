"""The committed pages are what the committed records give, and nothing else gets into them."""

import json
from pathlib import Path

import pytest

from equicaps.errors import UsageError
from reproduction import pages, tables, trainings
from reproduction.published import GOALS

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- results: written by equicaps reproduce -->", "<!-- end of results -->"


@pytest.fixture
def checkout(tmp_path, quick) -> Path:
    """A checkout with full records: the quick ones without their label."""
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/guarantees.md"):
        (tmp_path / page).write_text(f"# x\n\n{START}\n{END}\n\nafter\n")
    for name in ("exactness", "table1a", "table1b", "figures"):
        content = json.loads((quick / f"{name}.json").read_text()) | {"quick": False}
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def change(checkout, name, edit):
    path = checkout / "results" / f"{name}.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_the_committed_pages_are_current():
    assert pages.outdated(ROOT, ROOT / "results") == []


def test_check_notices_a_changed_record_and_writing_repairs(checkout):
    with pytest.raises(SystemExit, match="out of date"):
        pages.main(["--check", "--root", str(checkout)])
    pages.main(["--root", str(checkout)])
    pages.main(["--check", "--root", str(checkout)])
    change(checkout, "table1a", lambda content: content["cells"]["whole"]["rotated"].update(accuracy=12.34))
    with pytest.raises(SystemExit, match="out of date"):
        pages.main(["--check", "--root", str(checkout)])
    pages.main(["--root", str(checkout)])
    assert "12.34 %" in (checkout / "docs" / "results.md").read_text()
    assert "12.34 %" in (checkout / "README.md").read_text()


def test_a_page_typed_by_hand_is_noticed(checkout):
    pages.main(["--root", str(checkout)])
    page = checkout / "docs" / "results.md"
    page.write_text(page.read_text().replace("98.42 %", "98.43 %"))
    with pytest.raises(SystemExit, match=r"results\.md"):
        pages.main(["--check", "--root", str(checkout)])


def test_only_what_is_between_the_markers_changes(checkout):
    pages.main(["--root", str(checkout)])
    text = (checkout / "README.md").read_text()
    assert text.startswith(f"# x\n\n{START}\n\n|  | paper | equicaps |")
    assert text.endswith(f"{END}\n\nafter\n")


def test_the_page_of_guarantees_has_the_curve_and_what_quarter_turns_change(checkout):
    change(checkout, "exactness", lambda c: c["networks"]["whole"]["curve"]["accuracy"].__setitem__(1, 12.3))
    change(
        checkout, "exactness", lambda c: c["networks"]["whole"]["deviations"]["turned"].update(predictions_changed=7)
    )
    pages.main(["--root", str(checkout)])
    text = (checkout / "docs" / "guarantees.md").read_text()
    head = next(line for line in text.splitlines() if line.startswith("| trained on upright digits only |"))
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| `")]
    [curve] = [row for row in rows if row[1] == "`steerable`"]
    changes = [row[3] for row in rows if row[1] == "`upright-steerable`"]
    assert head.split(" | ")[1:] == ["0°", "90° |"]  # the quick curve has four points
    assert curve[3] == "12.3 %"
    assert changes == ["0", "7"]
    assert any(row[1] == "`rotated-paper`" for row in rows)


@pytest.mark.parametrize(
    "text", ["nothing", START, f"{END}\n{START}\n", f"{START}\n{START}\n{END}", f"{START}\n{END}\n{END}"]
)
def test_a_readme_without_its_markers_is_refused(checkout, text):
    (checkout / "README.md").write_text(text)
    with pytest.raises(SystemExit, match="each once"):
        pages.main(["--root", str(checkout)])
    assert (checkout / "README.md").read_text() == text


def test_quick_records_never_enter_the_tables(checkout):
    change(checkout, "table1b", lambda content: content.update(quick=True))
    with pytest.raises(UsageError, match="never enter the tables"):
        pages.load(checkout / "results")
    with pytest.raises(SystemExit, match="never enter"):
        pages.main(["--root", str(checkout)])
    assert not (checkout / "docs" / "results.md").exists()


def test_what_was_not_run_says_so(tmp_path):
    records = pages.load(tmp_path)
    assert not any(value is not None for value in tables.ours(records).values())
    assert tables.readme(records).count(tables.MISSING) == len(tables.README_ROWS)
    assert tables.page(records).count(tables.MISSING) >= len(GOALS)
    assert tables.guarantees(records).strip() == tables.MISSING


def test_figures_of_an_installed_package_have_no_commit(checkout):
    unknown = {"commit": None, "measured_with": None}
    change(checkout, "table1a", lambda content: content["cells"]["whole"]["rotated"].update(unknown))
    assert "| None | None |" in tables.page(pages.load(checkout / "results"))


def test_a_single_missing_cell_says_so(checkout):
    change(checkout, "table1a", lambda content: content["cells"]["whole"].update(affnist=None))
    values = tables.ours(pages.load(checkout / "results"))
    assert [key for key, value in values.items() if value is None] == ["affnist/whole"]


def test_a_missed_target_is_reported_as_missed(checkout):
    def row(page):
        return next(line for line in page.splitlines() if line.startswith("| rotated MNIST, whole |"))

    for accuracy, verdict in ((99.19, "| **no** |"), (99.21, "| yes |")):
        change(checkout, "table1a", lambda c, a=accuracy: c["cells"]["whole"]["rotated"].update(accuracy=a))
        assert row(tables.page(pages.load(checkout / "results"))).endswith(verdict)


def test_accuracy_that_is_not_identical_misses_its_target(checkout):
    def verdict():
        page = tables.page(pages.load(checkout / "results"))
        return next(line for line in page.splitlines() if line.startswith("| upright-trained, tested at 0/90"))[-12:]

    whole = dict.fromkeys(("0", "90", "180", "270"), 99.5)
    change(checkout, "exactness", lambda c: c["networks"]["whole"]["quarters"].update(accuracy=whole))
    assert "yes" in verdict()
    change(
        checkout, "exactness", lambda c: c["networks"]["whole"]["deviations"]["turned"].update(predictions_changed=1)
    )
    assert "no" in verdict()


def test_the_papers_figures_are_the_papers():
    """Against the text of Section 6 and Table 1 as printed."""
    printed = {key: goal.paper for key, goal in GOALS.items() if goal.paper is not None}
    assert printed == {
        "quarters": 99.02, "any_angle": 89.12, "any_angle_cnn": 58.79,
        "rotated/plain_cnn": 92.30, "rotated/capsules": 94.68, "rotated/whole": 98.42,
        "mnist_rot/plain_cnn": 90.19, "mnist_rot/capsules": 91.87, "mnist_rot/whole": 97.40,
        "affnist/plain_cnn": 81.64, "affnist/capsules": 71.86, "affnist/whole": 89.10,
        "pose/naive": 70.92, "pose/labels_only": 28.32, "pose/reconstruction": 16.21,
    }  # fmt: skip


@pytest.fixture
def reproduce(monkeypatch, tmp_path):
    """``equicaps reproduce`` of something cheap, in a folder with a README of somebody's."""
    from typer.testing import CliRunner

    from equicaps.cli.main import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("reproduction.__main__.mnist", lambda part: None)
    monkeypatch.setattr("torch.set_num_threads", lambda count: None)
    return lambda *words: CliRunner().invoke(app, ["reproduce", *words, "--no-training", "--json"])


def test_a_folder_with_a_readme_is_not_yet_a_checkout(reproduce, tmp_path):
    """Records and pictures stay in their own folder, and nothing else is touched."""
    (tmp_path / "README.md").write_text("mine")
    done = reproduce("exactness")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["written"] == []
    assert found["records"]["exactness"]["networks"] == {"whole": None, "plain_cnn": None}
    assert (tmp_path / "results" / "figures" / "accuracy_by_angle.png").exists()  # empty: without a legend's warning
    assert {path.name for path in tmp_path.iterdir()} == {"README.md", "results"}


def test_pages_with_their_markers_are_written(reproduce, checkout, tmp_path):
    """Control of the above."""
    done = reproduce("table1a")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["written"]) == 3
    assert (tmp_path / "docs" / "results.md").exists()


def test_ctrl_c_tells_that_the_step_was_saved(reproduce, monkeypatch, tmp_path):
    from types import SimpleNamespace

    monkeypatch.setattr(trainings, "train", lambda *given, **options: SimpleNamespace(finished=False, step=7))
    monkeypatch.setattr(
        "reproduction.__main__.table1a", lambda session: trainings.execute("rotated-paper", tmp_path, quick=True)
    )
    done = reproduce("table1a", "--quick")
    assert done.exit_code == 1
    assert "rotated-paper stopped after 7 steps, the last one finished and saved" in done.stderr
