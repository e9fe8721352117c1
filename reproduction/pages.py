"""The pages that show results, written from ``results/*.json`` and nothing else."""

import json
from collections.abc import Callable
from pathlib import Path

from equicaps._files import write_bytes
from equicaps.errors import UsageError
from reproduction import galaxies_page, ledger, paper_page, results_page, space_page, strangers_page, symmetric_page
from reproduction.markdown import filled
from reproduction.results import Record

EXPERIMENTS = ("exactness", "table1a", "table1b", "figures", "paper")
RESULTS, README = Path("docs", "results.md"), Path("README.md")
GUARANTEES, GALAXIES = Path("docs", "guarantees.md"), Path("docs", "galaxies.md")
REPRODUCTION, OWN_DATA = Path("docs", "reproduction.md"), Path("docs", "own_data.md")
SPACE = Path("docs", "space.md")

TABLES: dict[Path, dict[str, tuple[str, Callable[[Record], str]]]] = {
    OWN_DATA: {"results": ("strangers", strangers_page.table), "symmetric": ("symmetric", symmetric_page.table)},
    SPACE: {"results": ("points", space_page.table)},
}
"""Page -> its blocks, each written from one record."""


def load(results: Path) -> results_page.Records:
    """The record of every experiment on digits that was run."""
    return {name: _read(results / f"{name}.json") for name in EXPERIMENTS}


def outdated(root: Path) -> dict[Path, str]:
    """Pages of a checkout that differ from what its results give -> what they should contain."""
    current = _written(root)
    return {
        path: text for path, text in current.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    }


def update(root: Path) -> list[Path]:
    """Write the pages of a checkout; returns those that changed."""
    changed = outdated(root)
    for path, text in changed.items():
        write_bytes(path, text.encode())
    return list(changed)


def _written(root: Path) -> dict[Path, str]:
    results = root / "results"
    records, galaxies = load(results), _read(results / "galaxies.json")
    pages = {
        root / RESULTS: results_page.page(records),
        root / README: filled(root / README, {"results": results_page.readme(records)}),
        root / GUARANTEES: filled(root / GUARANTEES, {"results": results_page.guarantees(records)}),
    }
    if (root / REPRODUCTION).exists():
        tables = {"results": results_page.reproduction(records), "looks": paper_page.looks(ledger.looks(results))}
        if (speed := _read(results / "paper_speed.json")) is not None:
            tables["speed"] = paper_page.speed(speed)
        pages[root / REPRODUCTION] = filled(root / REPRODUCTION, tables)
    if galaxies is not None:
        pages[root / GALAXIES] = filled(root / GALAXIES, galaxies_page.tables(galaxies))
    for page, blocks in TABLES.items():
        found = {block: (_read(results / f"{name}.json"), table) for block, (name, table) in blocks.items()}
        if written := {block: table(record) for block, (record, table) in found.items() if record is not None}:
            pages[root / page] = filled(root / page, written)
    return pages


def _read(path: Path) -> Record | None:
    if not path.exists():
        return None
    record: Record = json.loads(path.read_text())
    if record.get("quick"):
        raise UsageError(f"{path} is from a quick run, whose figures never enter the tables: run it without --quick.")
    return record
