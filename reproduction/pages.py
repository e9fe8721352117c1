"""``docs/results.md`` and the tables of README and ``docs/guarantees.md``, from ``results/*.json`` and nothing else.

``python -m reproduction.pages`` writes them, with ``--check`` it only says whether they are current.
"""

import argparse
import json
import sys
from pathlib import Path

from equicaps._files import write_bytes
from equicaps.errors import UsageError
from reproduction import tables
from reproduction.markdown import filled
from reproduction.session import Record

NAMES = ("exactness", "table1a", "table1b", "figures")
PAGE, README = Path("docs") / "results.md", Path("README.md")
GUARANTEES = Path("docs") / "guarantees.md"


def load(results: Path) -> tables.Records:
    """What was measured; quick figures are refused."""
    found: dict[str, Record | None] = dict.fromkeys(NAMES)
    for name in NAMES:
        path = results / f"{name}.json"
        if path.exists():
            record = json.loads(path.read_text())
            if record.get("quick"):
                raise UsageError(f"{path} is from a quick run: its figures never enter the tables.")
            found[name] = record
    return found


def written(root: Path, results: Path) -> dict[Path, str]:
    """Path -> what its content has to be."""
    records = load(results)
    tables_of = {README: tables.readme(records), GUARANTEES: tables.guarantees(records)}
    return {root / PAGE: tables.page(records)} | {
        root / page: filled(root / page, {"results": table}) for page, table in tables_of.items()
    }


def is_checkout(root: Path) -> bool:
    """Whether the pages with tables are here, with their markers."""
    try:
        for page in (README, GUARANTEES):
            filled(root / page, {"results": ""})
    except (UsageError, OSError, UnicodeDecodeError):
        return False
    return True


def update(root: Path, results: Path) -> list[Path]:
    """Write the pages; returns those that changed."""
    changed = outdated(root, results)
    for path, text in written(root, results).items():
        if path in changed:
            write_bytes(path, text.encode())
    return changed


def outdated(root: Path, results: Path) -> list[Path]:
    """The pages that differ from what the records give."""
    return [
        path
        for path, text in written(root, results).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def main(words: list[str] | None = None) -> None:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a page is out of date")
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout")
    arguments = parser.parse_args(words)
    root: Path = arguments.root
    try:
        if arguments.check:
            if old := outdated(root, root / "results"):
                sys.exit(f"out of date: {', '.join(map(str, old))}; run python -m reproduction.pages")
        else:
            update(root, root / "results")
    except (UsageError, OSError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
