"""Options of `equicaps train FOLDER`, compared on images that are held back from training; no test image is read.

Run: python benchmarks/choices.py [--sets coins paper] [--options mirror ema] [--seeds 1] [--json results/choices.json].
For each set of stranger_sets.py (needs EQUICAPS_DATA), seed and option, the command trains on the folder of training
images alone, of which it holds back a part as its own test: the same part for all options. Rows that are in the file
already are not trained again. The table shows how much better an option is than the command without it, as the mean
over sets and seeds with its standard error.
"""

import argparse
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from stranger_sets import SETS, write_set

from equicaps._files import create_folder, write_json
from equicaps.training.log import RESULT, provenance

OPTIONS = {
    "default": (),
    "mirror": ("--mirror", "ignore"),
    "ema": ("--ema", "0.999"),
    "balance": ("--balance",),
}
FIGURES = ("accuracy", "balanced_accuracy")


def trained(name: str, option: str, seed: int, folder: Path, minutes: float | None) -> dict[str, Any]:
    """The row of one training."""
    data, out = write_set(name, folder / "sets"), folder / "choices" / f"{name}-{option}-{seed}"
    command = [sys.executable, "-m", "equicaps.cli.main", "train", str(data / "train"), "--seed", str(seed)]
    command += ["--out", str(out), *OPTIONS[option], *(["--resume"] if out.exists() else [])]
    subprocess.run([*command, *(["--minutes", str(minutes)] if minutes else [])], check=True)
    result = json.loads((out / RESULT).read_text())
    row = {"set": name, "option": option, "seed": seed, "commit": provenance()["commit"]}
    row |= {"cpu_minutes": result["cpu_seconds"] / 60, "images": result["figures"]["images"]}
    return row | {figure: result["figures"][figure] for figure in FIGURES}


def gains(rows: list[dict[str, Any]], option: str, figure: str) -> list[float]:
    """By how much an option is better than none, for each set and seed that has both."""
    found = {(row["set"], row["seed"], row["option"]): row[figure] for row in rows}
    pairs = [(found.get((*key, option)), found.get((*key, "default"))) for key in {place[:2] for place in found}]
    return [with_it - without for with_it, without in pairs if with_it is not None and without is not None]


def show(rows: list[dict[str, Any]]) -> None:
    """Print what every option gains."""
    print(f"{'option':<10}{'pairs':>6}{'accuracy':>18}{'balanced accuracy':>22}")
    for option in OPTIONS:
        parts = [gains(rows, option, figure) for figure in FIGURES]
        if option != "default" and parts[0]:
            print(f"{option:<10}{len(parts[0]):>6}{_mean(parts[0]):>18}{_mean(parts[1]):>22}")


def _mean(values: list[float]) -> str:
    error = f" ± {statistics.stdev(values) / math.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):+.2f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="read finished rows from this file, and write all rows to it")
    parser.add_argument("--sets", nargs="+", choices=tuple(SETS), default=list(SETS))
    parser.add_argument("--options", nargs="+", choices=tuple(OPTIONS)[1:], default=["mirror", "ema"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="CPU-minutes of each training; by default the command decides")
    parser.add_argument("--folder", type=Path, default=Path("runs/strangers"), help="where sets and trainings are kept")
    arguments = parser.parse_args()
    path = arguments.json
    content = json.loads(path.read_text()) if path and path.exists() else {**provenance(), "rows": []}
    rows = content["rows"]
    for seed in range(arguments.seeds):
        for name in arguments.sets:
            for option in ("default", *arguments.options):
                if any((row["set"], row["option"], row["seed"]) == (name, option, seed) for row in rows):
                    continue
                rows.append(trained(name, option, seed, arguments.folder, arguments.minutes))
                if path:
                    create_folder(path.parent)
                    write_json(path, content)
    show(rows)


if __name__ == "__main__":
    main()
