"""Make many attempts of every kind, and print the table of docs/reliability.md: ``python -m attack --help``."""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from commands import save_network
from PIL import Image

from attack import arguments, heavy_images, images, models, numbers, requests, trainings

Attack = Callable[[Random, int, Path], Generator[str | None]]
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- attacks: written by make attack -->\n", "<!-- end of attacks -->"


class Kind(NamedTuple):
    """One kind of attack, and how many attempts are made in the tests and at length."""

    what: str
    attack: Attack
    short: int
    long: int


def on_model(attack: Callable[[Random, int, Path, Path], Generator[str | None]]) -> Attack:
    """The attack on an untrained model."""

    def run(random: Random, count: int, folder: Path) -> Generator[str | None]:
        (folder / "whole").mkdir()
        return attack(random, count, folder, save_network(folder / "whole" / "mine.safetensors"))

    return run


def with_pictures(attack: Attack) -> Attack:
    """The attack in a folder with some images, one of which is none."""

    def run(random: Random, count: int, folder: Path) -> Generator[str | None]:
        for name in ("cat", "dog"):
            (folder / "pets" / name).mkdir(parents=True)
            for number in range(6):
                pixels = np.frombuffer(random.randbytes(400), np.uint8).reshape(20, 20)
                Image.fromarray(pixels).save(folder / "pets" / name / f"{number}.png")
        (folder / "pets" / "dog" / "\x1b[2J\x07.png").write_bytes(b"no image, and a name that clears the screen")
        return attack(random, count, folder)

    return run


KINDS = (
    Kind("damaged image files", images.attack, 150, 3000),
    Kind("images made to be large or slow", heavy_images.attack, 4, 120),
    Kind("pipes and devices as images", images.pipes, 4, 60),
    Kind("damaged model files", on_model(models.damaged_files), 25, 1500),
    Kind("model files written on purpose", on_model(models.written_on_purpose), 40, 1500),
    Kind("damaged folders of trainings", trainings.damaged_folders, 12, 300),
    Kind("trainings killed at any moment", trainings.kills, 8, 200),
    Kind("hostile command lines", with_pictures(arguments.attack), 10, 400),
    Kind("hostile requests to the page", requests.attack, 60, 3000),
    Kind("extreme numbers in groups", numbers.attack, 200, 5000),
)


def attempts(kind: Kind, count: int, seed: int, seconds: float = math.inf) -> list[str | None]:
    """The outcome of every attempt; none is begun after so many seconds."""
    deadline, outcomes = time.monotonic() + seconds, []
    with tempfile.TemporaryDirectory() as folder, closing(kind.attack(Random(seed), count, Path(folder))) as attack:
        for outcome in attack:
            outcomes.append(outcome)
            if time.monotonic() > deadline:
                break
    return outcomes


def write_page(rows: dict[str, str]) -> None:
    """Replace the rows of these kinds in the table of the page."""
    page = PAGE.read_text(encoding="utf-8")
    (before, rest), head = page.split(BEGIN), ["| attack | tried | survived | failed |", "|---|---|---|---|"]
    table, after = rest.split(END)
    known = {line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("|")} | rows
    lines = [*head, *(known[kind.what] for kind in KINDS if kind.what in known)]
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n\n" + END + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="as few attempts as in the tests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30, help="the time for all kinds together (default: 30)")
    parser.add_argument("--only", default="", help="only kinds whose name contains this")
    parser.add_argument("--page", action="store_true", help=f"write the table into {PAGE.name}")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows, failed = {}, 0
    for kind in KINDS:
        if given.only not in kind.what:
            continue
        started, count = time.monotonic(), kind.short if given.short else kind.long
        found = attempts(kind, count, given.seed, given.minutes * 60 / len(KINDS))
        wrong = [outcome for outcome in found if outcome]
        failed += len(wrong)
        rows[kind.what] = f"| {kind.what} | {len(found):,} | {len(found) - len(wrong):,} | {len(wrong)} |"
        print(f"{rows[kind.what]}  {time.monotonic() - started:.0f} s", flush=True)
        for outcome in wrong[:10]:
            print(f"    {outcome}", flush=True)
    if given.page:
        write_page(rows)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
