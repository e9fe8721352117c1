"""Radio galaxies of FIRST: trains steerable capsules and plain CNNs, tests them turned, compares poses with axes.

Run: EQUICAPS_DATA=... python experiments/galaxies.py (one process, one thread; stopped with Ctrl-C, it goes on where it
was). Then writes results/galaxies.json, and from it the tables of docs/galaxies.md and docs/figures/galaxies.png.
--page only writes these two; --commands runs the commands that the page shows and puts in what they print; --png FOLDER
writes some test sources as images for `equicaps predict`.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from PIL import Image

from equicaps.data import load_galaxies
from equicaps.errors import TrainingError
from equicaps.training import Progress
from reproduction.galaxies import METHODS, NAME, TRIALS, WORKSHOP, Training, measure, trained
from reproduction.galaxies_page import PAGE, PICTURE, draw, tables
from reproduction.markdown import filled

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with first_radio_galaxies.npz; by default found or fetched")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--train", action="store_true", help="only train; the test split is not looked at")
    parser.add_argument("--page", action="store_true", help="only write the page and its picture from the record")
    parser.add_argument("--commands", action="store_true", help="only run the page's commands")
    parser.add_argument("--png", type=Path, metavar="FOLDER", help="only write three test sources of each class there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    try:
        if arguments.png:
            write_png(arguments.png, arguments.data)
            return 0
        if arguments.commands:
            run_commands(arguments.results, arguments.data)
            return 0
        if not arguments.page:
            train_all(arguments.results, arguments.data)
        if not arguments.page and not arguments.train:
            measure(arguments.results, arguments.data)
        if not arguments.train:
            write_page(arguments.results, arguments.data)
    except (OSError, ValueError, TrainingError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def train_all(results: Path, data: Path | None) -> None:
    once_before_twice = sorted((training for row in METHODS.values() for training in row), key=lambda x: x.seed)
    for training in (*TRIALS.values(), *once_before_twice):
        record = trained(training, results, data, show)
        print(time.strftime("%H:%M"), training.folder, record["figures"], flush=True)


def show(progress: Progress) -> None:
    if progress.step % 20 == 0:
        print(f"  step {progress.step} of {progress.steps}: loss {progress.figures.loss:.3f}", flush=True)


def write_page(results: Path, data: Path | None) -> None:
    record = json.loads((results / f"{NAME}.json").read_text())
    page = ROOT / PAGE
    page.write_text(filled(page, tables(record)), encoding="utf-8")
    draw(ROOT / PICTURE, record, load_galaxies("test", data))


def run_commands(results: Path, data: Path | None) -> None:
    """On the first training, which is that of the page's command."""
    page = ROOT / PAGE
    environment = {**os.environ, "COLUMNS": "110", **({"EQUICAPS_DATA": str(data)} if data else {})}
    with tempfile.TemporaryDirectory() as folder:
        write_png(Path(folder) / "sources", data)
        shutil.copytree(results / WORKSHOP / Training().folder, Path(folder) / "runs" / "galaxies")

        def run(block: re.Match[str]) -> str:
            print(block[1], flush=True)
            program = [sys.executable, "-m", "equicaps.cli.main", *block[1].split()[1:]]
            done = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True)
            if done.returncode:
                raise TrainingError(f"{block[1]}: {done.stdout}{done.stderr}")
            lines = "\n".join(line.rstrip() for line in done.stdout.splitlines())
            return f"```console\n$ {block[1]}\n{lines}\n```"

        text = re.sub(r"```console\n\$ (equicaps .*)\n(?:.*\n)*?```", run, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def write_png(folder: Path, data: Path | None) -> None:
    test = load_galaxies("test", data)
    folder.mkdir(parents=True, exist_ok=True)
    for label, name in enumerate(test.classes):
        for number, place in enumerate((test.labels == label).nonzero().flatten().tolist()[:3]):
            Image.fromarray((test.images[place, 0] * 255).round().byte().numpy()).save(folder / f"{name}-{number}.png")


if __name__ == "__main__":
    sys.exit(main())
