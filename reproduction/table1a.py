"""Table 1a with our network: what poses, capsules and convolutions contribute, on three data sets."""

from reproduction.results import Record, Results

ROWS = {
    "capsules": "steerable_capsules",
    "without_poses": "steerable_cnn",
    "whole": "steerable",
}
"""Row -> preset."""

COLUMNS = ("rotated", "mnist_rot", "affnist")
"""The protocols."""

SHORT = ("rotated-steerable-short", "rotated-steerable-minutes")
"""Trainings on few images and for few CPU-minutes."""


def table1a(results: Results) -> Record:
    """Write ``table1a.json``: ``cells[ROW][COLUMN]`` and ``short``; null where nothing was trained."""
    cells = {row: {column: results.entry(f"{column}-{preset}") for column in COLUMNS} for row, preset in ROWS.items()}
    short = {name: results.entry(name) for name in SHORT}
    return results.write("table1a", {"cells": cells, "short": short})
