"""A long run: trainings and predictions that are killed and continued, and a page under load, all at the same time.

Run: ``make soak`` (30 minutes; ``make soak MINUTES=5`` for less). In the end everything must be as if nothing had
happened: the same weights bit for bit, the same answers, no file left over, no more memory than in the beginning.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from attack.requests import hostile, is_alive, polite, sent
from equicaps.training import load_checkpoint

EQUICAPS = (sys.executable, "-m", "equicaps.cli.main")
TRAINING = (
    "train",
    "digits",
    "--steps",
    "24",
    "--batch",
    "8",
    "--size",
    "32",
    "--preset",
    "steerable_cnn",
    "--save-every",
    "0",
)
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
BEGIN, END = "<!-- soak: written by make soak -->\n", "<!-- end of soak -->"
IMAGES = 400
MEGABYTES = 40
"""How much more memory the page may have in the end."""


class Soak:
    """What happened so far."""

    def __init__(self, folder: Path, until: float) -> None:
        self.folder, self.until = folder, until
        self.count: Counter[str] = Counter()
        self.problems: list[str] = []

    def goes_on(self) -> bool:
        return time.monotonic() < self.until and not self.problems

    def watch(self, actor: Callable[["Soak"], None]) -> None:
        """Whatever an actor raises is a problem, too."""
        try:
            actor(self)
        except Exception as error:
            self.problems.append(f"{actor.__name__}: {error!r}")


def call(*words: object, after: float | None = None) -> tuple[int | None, str]:
    """Run the program; if it still runs after so many seconds, kill it."""
    process = subprocess.Popen(
        [*EQUICAPS, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        said = process.communicate(timeout=after)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[0]
    return process.returncode, said


def train(soak: Soak) -> None:
    """Kill and resume trainings; each must end as the uninterrupted one does."""
    luck = random.Random(1)
    call(*TRAINING, "--out", soak.folder / "straight")
    expected = load_checkpoint(soak.folder / "straight")[0]
    while soak.goes_on():
        out = soak.folder / "killed"
        code: int | None = None
        while code is None and soak.goes_on():
            code, said = call(*TRAINING, "--out", out, "--resume", after=luck.uniform(3, 30))
            soak.count["trainings killed"] += code is None
        if code is None:
            break
        found = load_checkpoint(out)[0] if code == 0 else {}
        if found.keys() != expected.keys() or not all(torch.equal(found[name], expected[name]) for name in expected):
            soak.problems.append(f"a training ended with exit code {code} and other weights: {said[-500:]}")
        left = {path.name for path in out.iterdir()} - {path.name for path in (soak.folder / "straight").iterdir()}
        soak.problems += [f"left over: {left}"] if left else []
        soak.count["trainings finished"] += 1
        shutil.rmtree(out)


def picture(luck: random.Random, path: Path) -> None:
    pixels = np.frombuffer(luck.randbytes(784), np.uint8).reshape(28, 28)
    Image.fromarray(pixels).save(path)


def predict(soak: Soak) -> None:
    """Predict a folder that changes while it is read, with kills; afterwards, the answers are those of a quiet run."""
    luck = random.Random(2)
    images, answers = soak.folder / "images", soak.folder / "answers.csv"
    images.mkdir()
    for number in range(IMAGES):
        picture(luck, images / f"{number:04}.png")
    changes = threading.Thread(target=change, args=(soak, images))
    changes.start()
    while soak.goes_on():
        code, said = call("predict", images, "--out", answers, "--force", after=luck.uniform(2, 10))
        soak.count["predictions killed" if code is None else "predictions finished"] += 1
        if code not in (None, 0, 1) or "Traceback" in said:
            soak.problems.append(f"predict ended with exit code {code}: {said[-500:]}")
    changes.join()
    quiet = soak.folder / "quiet.csv"
    call("predict", images, "--out", quiet)
    answers.unlink(missing_ok=True)
    code, patience = call("predict", images, "--out", answers, "--force", after=2)[0], 2.0
    while code is None:
        soak.count["predictions killed and continued"] += 1
        code, patience = call("predict", images, "--out", answers, after=patience)[0], patience * 1.1
    if answers.read_bytes() != quiet.read_bytes():
        soak.problems.append("the answers after all kills are not those of a quiet run")
    if left := [path.name for path in soak.folder.glob("*answers*") if path != answers]:
        soak.problems.append(f"left over: {left}")


def change(soak: Soak, images: Path) -> None:
    """Add, rewrite, damage and remove images."""
    luck = random.Random(3)
    while soak.goes_on():
        path = images / f"{luck.randrange(IMAGES + 50):04}.png"
        kind = luck.choice(("write", "write", "damage", "remove"))
        if kind == "write":
            picture(luck, path)
        elif kind == "damage":
            path.write_bytes(luck.randbytes(100))
        else:
            path.unlink(missing_ok=True)
        soak.count["images changed"] += 1
        time.sleep(0.05)


def serve(soak: Soak) -> None:
    """Ask the page, politely and not; its memory must come back, and Ctrl-C must end it without a word of complaint."""
    luck, port = random.Random(4), 8791
    page = subprocess.Popen(
        [*EQUICAPS, "serve", "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: answers(port))
    for _ in range(300):
        sent(port, hostile(luck, port))
        sent(port, polite(luck, port), hang_up=False)
    before = resident(page.pid)
    while soak.goes_on():
        for _ in range(20):
            problem = sent(port, hostile(luck, port))
            soak.problems += [problem] if problem else []
            soak.count["requests"] += 1
        for _ in range(10):
            problem = sent(port, polite(luck, port), hang_up=False)
            soak.problems += [problem] if problem else []
            soak.count["questions and images"] += 1
        if not is_alive(luck, port):
            soak.problems.append("the page answers no more")
        time.sleep(0.1)
    time.sleep(3)
    grown = resident(page.pid) - before
    soak.count["megabytes that the page has grown"] = round(grown)
    soak.problems += [f"the page has {grown:.0f} MB more than in the beginning"] if grown > MEGABYTES else []
    page.send_signal(signal.SIGINT)
    said = page.communicate(timeout=30)[1]
    soak.problems += [f"the page says {said[-500:]}"] if "Traceback" in said else []


def resident(pid: int) -> float:
    """The memory of a process in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def answers(port: int) -> bool:
    try:
        return is_alive(random.Random(0), port)
    except OSError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"not within {seconds} seconds")
        time.sleep(0.1)


def write_page(happened: str) -> None:
    """Replace what the page says about the last long run."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{happened}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--page", action="store_true", help=f"write what happened into {PAGE.name}")
    given = parser.parse_args()
    minutes = given.minutes
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), time.monotonic() + 60 * minutes)
        actors = [threading.Thread(target=soak.watch, args=(actor,)) for actor in (train, predict, serve)]
        for actor in actors:
            actor.start()
        for actor in actors:
            actor.join()
    happened = f"{minutes:g} minutes: " + ", ".join(f"{count:,} {what}" for what, count in sorted(soak.count.items()))
    print(happened)
    for problem in soak.problems:
        print(f"FAILED: {problem}")
    if given.page:
        write_page(f"{happened}; {len(soak.problems)} problems.")
    sys.exit(bool(soak.problems))


if __name__ == "__main__":
    main()
