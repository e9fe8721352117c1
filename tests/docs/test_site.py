"""The site builds without a warning, its formulas are MathML, and it needs no network."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import equicaps

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("start", "guarantees", "image_sizes", "own_data", "own_group", "export", "gallery", "training", "sklearn",
         "conventions", "architecture", "paper_map", "notebooks/standing_still", "notebooks/own_shapes",
         "api/index")  # fmt: skip


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    """Build the site as ``make docs`` does, but without running the notebooks, which have a test of their own."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-D", "nb_execution_mode=off"]
    return subprocess.run([*command, source, target], cwd=ROOT, capture_output=True, text=True)


def fetched(page: str) -> list[str]:
    """The addresses from which a browser would load something."""
    return re.findall(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']((?:https?:)?//[^"']*)""", page)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", target)
    assert done.returncode == 0, done.stderr
    return target


def test_every_page_is_there_and_in_the_table_of_contents(site):
    index = (site / "index.html").read_text(encoding="utf-8")
    for page in PAGES:
        assert (site / f"{page}.html").is_file()
        assert f'href="{page}.html"' in index


def test_every_public_class_and_function_is_in_the_reference(site):
    reference = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    rooms = filter(inspect.ismodule, (getattr(equicaps, name) for name in equicaps.__all__))
    names = [
        f"{room.__name__}.{name}"
        for room in rooms
        for name in getattr(room, "__all__", ())
        if inspect.isclass(getattr(room, name)) or inspect.isfunction(getattr(room, name))
    ]
    assert len(names) > 50
    assert [name for name in names if f'id="{name}"' not in reference] == []


def test_pages_are_read_without_a_network(site):
    for page in site.rglob("*.html"):
        assert fetched(page.read_text(encoding="utf-8")) == [], page.name


def test_that_check_notices_a_foreign_script():
    """Control."""
    assert fetched('<script async src="https://cdn.example/mathjax.js"></script><a href="https://x.example">') == [
        "https://cdn.example/mathjax.js"
    ]


def test_formulas_and_shapes_of_the_interface_are_readable(site):
    page = (site / "api" / "functional.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert r"\leftarrow" not in page
    words = re.sub(r"<[^>]+>", "", page)
    assert "votes: Float[Tensor, '*batch m n d']" in words
    assert "jaxtyping." not in words
    assert "Alias for field number" not in words


def test_a_page_that_does_not_exist_fails_the_build(tmp_path):
    """Control: a dead link, a page in no table of contents and a formula that cannot be read are errors."""
    for name in ("conf.py", "_extensions", "_static"):
        source = ROOT / "docs" / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "index.md").write_text("# x\n\n[y](nowhere.md)\n\n$\\frac$\n")
    (tmp_path / "lost.md").write_text("# lost\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    for message in ("nowhere.md", "no MathML", "lost.md"):
        assert message in done.stderr
