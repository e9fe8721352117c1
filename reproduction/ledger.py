"""Every look at a test set, in ``results/test_looks.json``: settings that are chosen on test images show up here."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

from equicaps._files import prepare_folder, write_json
from equicaps.training.log import provenance

LEDGER = "test_looks.json"


class Look(TypedDict):
    """A network was measured on test images."""

    when: str
    commit: str
    """Of the code that measured."""
    run: str
    """The name of the training."""
    trained_by: str
    """The commit of the training: measuring the same weights again tells nothing new, and is not written down."""
    test: str


def looks(folder: Path) -> list[Look]:
    """All looks, from the first on."""
    path = folder / LEDGER
    found: list[Look] = json.loads(path.read_text()) if path.exists() else []
    return found


def write_down(folder: Path, *, run: str, trained_by: str, test: str) -> None:
    """Add a look, unless the same weights were measured on the same images before."""
    before = looks(folder)
    if any((look["run"], look["trained_by"], look["test"]) == (run, trained_by, test) for look in before):
        return
    now = datetime.now(UTC).isoformat(timespec="seconds")
    prepare_folder(folder)
    look = Look(when=now, commit=provenance()["commit"], run=run, trained_by=trained_by, test=test)
    write_json(folder / LEDGER, [*before, look])
