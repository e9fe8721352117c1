"""Table 1a: what poses, capsules and convolutions contribute, on three data sets."""

from reproduction.results import Record, Results

ROWS = {
    "plain_cnn": "plain_cnn",
    "capsules": "steerable_capsules",
    "without_poses": "steerable_cnn",
    "whole": "steerable",
}
"""Row -> preset."""

COLUMNS = ("rotated", "mnist_rot", "affnist")
"""The protocols."""

SAME_BUDGET = ("rotated-paper", "rotated-capsules_only", "rotated-steerable-short", "rotated-steerable-minutes")
"""The paper's own networks trained briefly, ours on as many images, and ours for about as many CPU-minutes."""


def table1a(results: Results) -> Record:
    """Write ``table1a.json``: ``cells[ROW][COLUMN]`` and ``same_budget``; null where nothing was trained."""
    cells = {row: {column: results.entry(f"{column}-{preset}") for column in COLUMNS} for row, preset in ROWS.items()}
    same_budget = {name: results.entry(name) for name in SAME_BUDGET}
    return results.write("table1a", {"cells": cells, "same_budget": same_budget})
