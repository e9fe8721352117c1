"""The committed pages are what the committed records give, and nothing else gets into them."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import failed_cleanly
from typer.testing import CliRunner

from equicaps.errors import UsageError
from reproduction import pages, paper, results_page
from reproduction.__main__ import app
from reproduction.published import GOALS
from reproduction.results import Results

ROOT = Path(__file__).resolve().parents[2]
START, END = "<!-- results: written by python -m reproduction pages -->", "<!-- end of results -->"


@pytest.fixture
def checkout(tmp_path, quick, monkeypatch) -> Path:
    """A checkout with full records: the quick ones without their label. The commands take it for their own."""
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    for page in ("README.md", "docs/guarantees.md"):
        (tmp_path / page).write_text(f"# x\n\n{START}\n{END}\n\nafter\n")
    for name in ("exactness", "table1a", "table1b", "figures", "paper"):
        content = json.loads((quick / f"{name}.json").read_text()) | {"quick": False}
        (tmp_path / "results" / f"{name}.json").write_text(json.dumps(content))
    for module in ("__main__", "results"):
        monkeypatch.setattr(f"reproduction.{module}.ROOT", tmp_path)
    return tmp_path


def change(checkout, name, edit):
    path = checkout / "results" / f"{name}.json"
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_the_committed_pages_are_current():
    assert list(pages.outdated(ROOT)) == []


def write(*words):
    return CliRunner().invoke(app, ["pages", *words])


def test_check_notices_a_changed_record_and_writing_repairs(checkout):
    def accuracy_becomes(value):
        change(checkout, "table1a", lambda content: content["cells"]["whole"]["rotated"].update(accuracy=value))

    for accuracy in (12.34, 56.78):
        accuracy_becomes(accuracy)
        assert failed_cleanly(write("--check"), 2, "out of date: docs/results.md, README.md")
        assert write().exit_code == 0
        assert write("--check").exit_code == 0
        assert f"{accuracy} %" in (checkout / "docs" / "results.md").read_text()
        assert f"| {accuracy} % |" in (checkout / "README.md").read_text()


def test_check_writes_nothing(checkout):
    write("--check")
    assert not (checkout / "docs" / "results.md").exists()


def test_a_page_edited_by_hand_is_noticed(checkout):
    write()
    page = checkout / "docs" / "results.md"
    page.write_text(page.read_text().replace("98.42 %", "98.43 %"))
    assert failed_cleanly(write("--check"), 2, "out of date: docs/results.md. Run")


def test_only_what_is_between_the_markers_changes(checkout):
    write()
    text = (checkout / "README.md").read_text()
    assert text.startswith(f"# x\n\n{START}\n\n|  | paper | the paper's network, here | `steerable` |")
    assert text.endswith(f"{END}\n\nafter\n")


def test_the_readme_says_whose_figures_they_are(checkout):
    """The paper, its network here, and ours, each in its column; sizes; that two data sets are regenerated."""
    change(checkout, "table1a", lambda c: c["cells"]["whole"]["rotated"].update(accuracy=11.11))
    change(checkout, "paper", lambda c: c["trainings"]["rotated-paper"].update(accuracy=22.22, pose_error_mean=3.33))
    change(checkout, "paper", lambda c: c["trainings"]["rotated-capsules_only"].update(accuracy=44.44))
    change(checkout, "paper", lambda c: c["trainings"]["mnist_rot-plain_cnn"].update(accuracy=33.33))
    change(checkout, "paper", lambda c: c["trainings"].update(dict.fromkeys(paper.SEEDS[1:])))
    write()
    text = (checkout / "README.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert rows["rotated MNIST, whole network"].endswith("| 98.42 % | 22.22 % | 11.11 % |")
    assert "| 94.68 % | 44.44 % |" in rows["rotated MNIST, capsules only"]
    assert "| 16.21° | 3.33° |" in rows["pose error, with reconstruction loss"]
    assert "145k + 90k parameters in the paper and 231k here, of which the capsules alone have 140k" in text
    assert "ours has 158k (`steerable`) and, for capsules only, 263k (`steerable_capsules`)" in text
    assert "MNIST-rot and affNIST are *regenerated*" in text
    assert "A plain CNN with batch normalisation (`plain_cnn`, 91k parameters, of which 59k are effective)" in text
    assert " on rotated MNIST, 33.33 % on MNIST-rot, " in text


def test_what_falls_short_of_the_paper_says_so(checkout):
    """To two digits, as the paper prints its figures; the plain CNN is nobody's claim."""

    def shown(accuracy):
        change(checkout, "paper", lambda c: c["trainings"]["mnist_rot-capsules_only"].update(accuracy=accuracy))
        write()
        page = (checkout / "docs" / "results.md").read_text()
        row = next(line for line in page.splitlines() if line.startswith("| MNIST-rot (regenerated), capsules only"))
        return row.split(" | ")[5], (checkout / "README.md").read_text()

    verdict, text = shown(91.8749)
    assert verdict == "yes"
    assert "The paper's network falls short" in text  # trained for a few steps, in everything else
    assert "; MNIST-rot (regenerated), capsules only;" not in text
    verdict, text = shown(91.864)
    assert verdict == "**no**"
    assert "; MNIST-rot (regenerated), capsules only;" in text


def test_the_plain_cnn_with_as_many_minutes_is_named_where_it_was_trained(checkout):
    longer = {"accuracy": 98.76, "images_seen": 1234, "cpu_minutes": 5.67}
    change(checkout, "paper", lambda c: c["trainings"]["rotated-plain_cnn-minutes"].update(longer))
    write()
    said = (
        "; and 98.76 % on rotated MNIST after as many CPU-minutes as the paper's network (5.7), in which it sees 1,234"
    )
    assert said in (checkout / "README.md").read_text()
    change(checkout, "paper", lambda c: c["trainings"].update({"rotated-plain_cnn-minutes": None}))
    write()
    assert "after as many CPU-minutes" not in (checkout / "README.md").read_text()


def test_pose_errors_after_different_numbers_of_views_say_so(checkout):
    views = {"rotated-paper-labels_only": 800_000, "rotated-paper": 2_249_984}
    for name, count in views.items():
        change(checkout, "paper", lambda c, n=name, k=count: c["trainings"][n].update(images_seen=k))
    write()
    said = "Its pose errors were measured after 800,000 views without the reconstruction loss, and after 2,249,984 with"
    assert said in (checkout / "README.md").read_text()
    change(checkout, "paper", lambda c: c["trainings"]["rotated-paper"].update(images_seen=800_000))
    write()
    assert "Its pose errors were measured" not in (checkout / "README.md").read_text()


def test_repetitions_are_shown_with_their_spread(checkout):
    """Three seeds: mean and standard deviation; a single one says that it is single."""
    for name, accuracy in zip(paper.SEEDS, (98.0, 98.5, 99.0), strict=True):
        change(checkout, "paper", lambda c, n=name, a=accuracy: c["trainings"][n].update(accuracy=a))
    write()
    text = (checkout / "README.md").read_text()
    assert "mean and standard deviation of 3 seeds: 98.50 % ± 0.50 (whole)" in text
    assert "| rotated MNIST, whole network | 98.42 % | 98.50 % ± 0.50 |" in text
    change(checkout, "paper", lambda c: c["trainings"].update(dict.fromkeys(paper.SEEDS[1:])))
    write()
    assert "| rotated MNIST, whole network | 98.42 % | 98.00 % |" in (checkout / "README.md").read_text()
    assert "Each figure is of one training, without repetitions." in (checkout / "README.md").read_text()


def test_old_records_show_the_views_of_their_protocol(checkout):
    """A training on rotated digits is never said to have seen them as they are."""
    for known in ("Augmentation(size=32, rotation=180.0)", "as its protocol says"):
        change(checkout, "table1a", lambda c, k=known: c["cells"]["whole"]["rotated"].update(augmentation=k))
        write()
        lines = (checkout / "docs" / "results.md").read_text().splitlines()
        [row] = {line for line in lines if line.startswith("| `rotated-steerable` | MNIST")}
        assert "| rotated |" in row


def test_the_page_of_guarantees_has_the_curve_and_what_quarter_turns_change(checkout):
    def edit(content):
        content["networks"]["whole"]["curve"]["accuracy"][1] = 12.3
        content["networks"]["whole"]["deviations"]["turned"]["predictions_changed"] = 7

    change(checkout, "exactness", edit)
    write()
    text = (checkout / "docs" / "guarantees.md").read_text()
    head = next(line for line in text.splitlines() if line.startswith("| trained on upright digits only |"))
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| `")]
    [curve] = [row for row in rows if row[1] == "`steerable`"]
    changes = [row[3] for row in rows if row[1] == "`upright-steerable`"]
    assert head.split(" | ")[1:] == ["0°", "90° |"]  # the quick curve has four points
    assert curve[3] == "12.3 %"
    assert changes == ["0 of 120", "7 of 120"]


@pytest.mark.parametrize(
    "text", ["nothing", START, f"{END}\n{START}\n", f"{START}\n{START}\n{END}", f"{START}\n{END}\n{END}"]
)
def test_a_readme_without_its_markers_is_refused(checkout, text):
    (checkout / "README.md").write_text(text)
    assert failed_cleanly(write(), 2, "each once")
    assert (checkout / "README.md").read_text() == text


def test_quick_records_never_enter_the_tables(checkout):
    change(checkout, "table1b", lambda content: content.update(quick=True))
    with pytest.raises(UsageError, match="never enter the tables"):
        pages.load(checkout / "results")
    assert failed_cleanly(write(), 2, "never enter")
    assert not (checkout / "docs" / "results.md").exists()


def test_what_was_not_run_says_so(tmp_path):
    records = pages.load(tmp_path)
    assert results_page.measured(records) == {}
    assert results_page.measured_with_paper(records) == {}
    assert results_page.readme(records).count(results_page.MISSING) == 2 * len(results_page.README_ROWS)
    assert results_page.page(records).count(results_page.MISSING) >= len(GOALS)
    assert results_page.guarantees(records).strip() == results_page.MISSING


def test_figures_from_outside_a_git_checkout_have_no_commit(checkout):
    unknown = {"commit": None, "measured_with": None}
    change(checkout, "table1a", lambda content: content["cells"]["whole"]["rotated"].update(unknown))
    assert "| None | None |" in results_page.page(pages.load(checkout / "results"))


def test_a_single_missing_cell_says_so(checkout):
    change(checkout, "table1a", lambda content: content["cells"]["whole"].update(affnist=None))
    change(checkout, "paper", lambda content: content["trainings"].update({"mnist_rot-paper": None}))
    records = pages.load(checkout / "results")
    of_the_paper = {goal for goal in GOALS if goal.endswith("_cnn")}
    assert set(GOALS) - set(results_page.measured(records)) == {"affnist/whole"} | of_the_paper
    assert {*paper.SOURCES, "quarters"} - set(results_page.measured_with_paper(records)) == {"mnist_rot/whole"}


def test_a_missed_target_is_reported_as_missed(checkout):
    def row(page):
        return next(line for line in page.splitlines() if line.startswith("| rotated MNIST, whole network |"))

    for accuracy, verdict in ((99.19, "| **no** |"), (99.21, "| yes |")):
        change(checkout, "table1a", lambda c, a=accuracy: c["cells"]["whole"]["rotated"].update(accuracy=a))
        assert row(results_page.page(pages.load(checkout / "results"))).endswith(verdict)


def test_accuracy_that_is_not_identical_misses_its_target(checkout):
    def verdict():
        page = results_page.page(pages.load(checkout / "results"))
        return next(line for line in page.splitlines() if line.startswith("| trained upright, accuracy at 0°"))[-12:]

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
        "quarters": 99.02, "any_angle": 89.12, "upright_cnn": 99.13, "any_angle_cnn": 58.79,
        "rotated/plain_cnn": 92.30, "rotated/capsules": 94.68, "rotated/whole": 98.42,
        "mnist_rot/plain_cnn": 90.19, "mnist_rot/capsules": 91.87, "mnist_rot/whole": 97.40,
        "affnist/plain_cnn": 81.64, "affnist/capsules": 71.86, "affnist/whole": 89.10,
        "pose/naive": 70.92, "pose/labels_only": 28.32, "pose/reconstruction": 16.21,
    }  # fmt: skip


def reproduce(*words):
    return CliRunner().invoke(app, [*words, "--no-training", "--json"])


def test_results_elsewhere_touch_no_page(checkout, tmp_path):
    """Records and pictures stay in their own folder."""
    before = (checkout / "README.md").read_text()
    done = reproduce("exactness", "--results", str(tmp_path / "elsewhere"))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["written"] == []
    assert found["records"]["exactness"]["networks"] == {"whole": None, "plain_cnn": None}
    assert (tmp_path / "elsewhere" / "figures" / "accuracy_by_angle.png").exists()  # empty: without a legend's warning
    assert (checkout / "README.md").read_text() == before
    assert not (checkout / "docs" / "results.md").exists()


def test_results_of_the_checkout_are_shown_on_its_pages(checkout):
    """Control of the above; the pictures belong to the pages, too."""
    done = reproduce("exactness")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)["written"]) == 3
    assert (checkout / "docs" / "figures" / "accuracy_by_angle.png").exists()


def test_quick_results_are_never_published(checkout):
    assert not Results(checkout / "results", quick=True).published
    assert Results(checkout / "results").published


def test_ctrl_c_says_that_the_training_was_saved(checkout, monkeypatch):
    monkeypatch.setattr("reproduction.results.train", lambda *given, **options: SimpleNamespace(finished=False, step=7))
    done = CliRunner().invoke(app, ["table1a", "--quick"])
    assert failed_cleanly(done, 1, "rotated-steerable_capsules stopped after 7 steps and was saved")


def entries(content):
    """Every figure of a training anywhere in a record."""
    if isinstance(content, dict):
        if "run" in content and "commit" in content:
            yield content
        for value in content.values():
            yield from entries(value)


def test_committed_tables_show_the_committed_trainings():
    """No table is of an older training of the same name, and none lacks a training that is finished."""
    trained = {path.stem: json.loads(path.read_text())["commit"] for path in (ROOT / "results" / "runs").glob("*.json")}
    shown = [entry for content in pages.load(ROOT / "results").values() for entry in entries(content)]
    assert len(shown) > 20
    assert {(entry["run"], entry["commit"]) for entry in shown} == set(trained.items())


@pytest.mark.parametrize("page", pages.TABLES, ids=str)
def test_every_table_has_its_place(page):
    """Also those whose record is not there yet."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert all(f"<!-- {block}: " in text and f"<!-- end of {block} -->" in text for block in pages.TABLES[page])
