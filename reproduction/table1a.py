"""Table 1a: what poses, capsules and convolutions contribute, on three data sets."""

from reproduction.session import Record, Session, described

TESTED_ON = {
    "rotated": "MNIST (test), each digit turned by a seeded angle",
    "mnist_rot": "MNIST-rot (regenerated, seed 0, test)",
    "affnist": "affNIST (regenerated, seed 0, test)",
    "upright": "MNIST (test), each digit turned by a seeded angle",
}
"""Protocol -> what its figures were measured on."""

ROWS = {
    "plain_cnn": "plain_cnn",
    "capsules": "steerable_capsules",
    "without_poses": "steerable_cnn",
    "whole": "steerable",
}
"""Row -> preset."""

COLUMNS = ("rotated", "mnist_rot", "affnist")
EXTRA = ("rotated-paper", "rotated-capsules_only", "rotated-steerable-short", "rotated-steerable-minutes")
"""The paper's own network on a shorter budget, ours on the same number of images, and ours on about as many minutes."""


def table1a(session: Session) -> Record:
    """Writes ``table1a.json``: ``cells[ROW][COLUMN]`` and ``same_budget``; None where nothing was trained."""
    cells = {
        row: {column: _entry(session, column, f"{column}-{preset}") for column in COLUMNS}
        for row, preset in ROWS.items()
    }
    extra = {run: _entry(session, "rotated", run) for run in EXTRA}
    return session.write("table1a", {"cells": cells, "same_budget": extra})


def _entry(session: Session, column: str, run: str) -> Record | None:
    record = session.record(run)
    return None if record is None else described(record, TESTED_ON[column])
