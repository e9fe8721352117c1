"""``docs/own_data.md``: its table of folders that a stranger might bring, from ``results/strangers.json``."""

import statistics
from typing import Any

from reproduction.markdown import markdown_table
from reproduction.results import Record

SETS = {
    "coins": "euro coins, both faces",
    "cells": "red blood cells, other smears in the test",
    "galaxies": "radio galaxies",
    "paper": "digits (MNIST) drawn dark on bright paper",
}
NETWORKS = ("equicaps", "CNN", "CNN, 8 views")
HEAD = (
    "images (training / test)",
    "`equicaps train FOLDER`",
    "plain CNN",
    "plain CNN, averaged over 8 rotations",
    "changed by quarter turns",
    "angles within their stated error (a third each: the smallest, middle and largest errors)",
    "seeds, CPU-minutes each",
)


def table(record: Record) -> str:
    """A row for each set with the means over its seeds; in brackets the mean of the accuracies of all classes."""
    sets = {name: _of_set(record["rows"], name) for name in SETS}
    return markdown_table(HEAD, [_row(SETS[name], rows) for name, rows in sets.items() if rows["equicaps"]])


def _of_set(rows: dict[str, Any], name: str) -> dict[str, list[Record]]:
    """Network -> its rows, of the seeds that all networks have."""
    own = [row for row in rows.values() if row.get("set") == name]
    found = {kind: {row["seed"]: row for row in own if row["network"] == kind} for kind in NETWORKS}
    seeds = sorted(set.intersection(*(set(of_seeds) for of_seeds in found.values())))
    return {kind: [found[kind][seed] for seed in seeds] for kind in NETWORKS}


def _row(what: str, rows: dict[str, list[Record]]) -> list[str]:
    first, *_ = ours = rows["equicaps"]
    changed = " / ".join(f"{sum(row['changed_by_quarter_turns'] for row in rows[kind]):,}" for kind in NETWORKS)
    return [
        f"{what} ({first['training_images']:,} / {first['test_images']:,})",
        *(_accuracy(rows[kind], bold=kind == "equicaps") for kind in NETWORKS),
        f"{changed} of {3 * sum(row['test_images'] for row in ours):,}",
        _covered([row for row in ours if "angle_error_coverage" in row]),
        f"{len(ours)}, {statistics.mean(row['cpu_minutes'] for row in ours):.1f}",
    ]


def _covered(rows: list[Record]) -> str:
    """The share of angles within their stated error, over all and in each third of the stated errors."""
    if not rows:
        return "–"
    parts = ("", *(f"_{name}_third" for name in ("smallest", "middle", "largest")))
    every, *thirds = (statistics.mean(row[f"angle_error_coverage{part}"] for row in rows) for part in parts)
    return f"{every:.1f} % ({', '.join(f'{third:.1f}' for third in thirds)})"


def _accuracy(rows: list[Record], *, bold: bool) -> str:
    """With the standard deviation over seeds or, of a single one, the 95 % interval over images."""
    found = [row["accuracy"] for row in rows]
    text = f"{statistics.mean(found):.1f} %"
    low, high = rows[0]["accuracy_interval"]
    spread = f" ± {statistics.stdev(found):.1f}" if len(found) > 1 else f", {low:.1f} to {high:.1f}"
    balanced = statistics.mean(row["balanced_accuracy"] for row in rows)
    return f"**{text}**{spread} ({balanced:.1f} %)" if bold else f"{text}{spread} ({balanced:.1f} %)"
