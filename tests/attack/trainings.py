"""Trainings that are killed at any moment, and folders of trainings in which files were damaged."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Generator
from pathlib import Path
from random import Random

import torch
from small_training import ROTATED, config, digits, network

from attack.children import outcome
from attack.damage import damaged
from equicaps.errors import EquicapsError
from equicaps.training import Progress, load_checkpoint, train
from equicaps.training.checkpoint import CHECKPOINT, PREVIOUS
from equicaps.training.log import EVALUATIONS, RESULT, STEPS

STEP_COUNT = 12
FILES = (CHECKPOINT, PREVIOUS, STEPS, EVALUATIONS, RESULT, ".lock", f".{CHECKPOINT}.partial")


def _run(folder: Path, steps: int = STEP_COUNT) -> None:
    torch.manual_seed(5)
    train(config(steps), digits(), ROTATED, folder=folder, network=network(), resume=True)


def kills(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """After every kill the training can be resumed, and in the end it is the uninterrupted one, bit for bit."""
    _run(folder / "straight")
    started = time.monotonic()
    _run(folder / "timed")
    takes, left, number = time.monotonic() - started, count, 0
    while left:
        place, number = folder / f"killed-{number}", number + 1
        deaths = random.randint(1, min(left, 6))
        for _ in range(deaths):
            _killed(place, random.uniform(0, 0.5 * takes))
        left -= deaths
        found = outcome(lambda place=place: _same(place, folder / "straight"), folder / "report", seconds=120)
        shutil.rmtree(place, ignore_errors=True)
        yield from [None] * (deaths - 1) + [found]


def _killed(place: Path, after: float) -> None:
    """Train in a process, and kill it after some time, unless it has finished."""
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            _run(place)
        os._exit(0)
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def _same(place: Path, straight: Path) -> str | None:
    _run(place)
    ours, theirs = (load_checkpoint(folder)[0] for folder in (place, straight))
    same = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    rest = {path.name for path in place.iterdir()} - {path.name for path in straight.iterdir()}
    return None if same and not rest else f"the weights are the same: {same}; left over: {rest or 'nothing'}"


def damaged_folders(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Files of an interrupted training are damaged, or are something else.

    It goes on and becomes the uninterrupted one, or is refused in one line.
    """
    _run(folder / "straight")
    _interrupted(folder / "begun")
    for number in range(count):
        place = folder / f"damaged-{number}"
        shutil.copytree(folder / "begun", place)
        for name in random.sample(FILES, random.randint(1, 3)):
            _harm(random, place / name)
        yield outcome(lambda place=place: _resumed(place, folder / "straight"), folder / "report", seconds=60)
        shutil.rmtree(place, ignore_errors=True)


def _harm(random: Random, path: Path) -> None:
    content = path.read_bytes() if path.exists() else b""
    path.unlink(missing_ok=True)
    kind = random.choice(("damaged", "damaged", "empty", "missing", "pipe", "folder", "link"))
    if kind == "damaged":
        path.write_bytes(damaged(random, content))
    elif kind == "empty":
        path.touch()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(path.name)


class StopError(Exception):
    """Ends a training early."""


def _interrupted(place: Path) -> None:
    """A training that has two checkpoints, but not yet the last step."""

    def watch(progress: Progress) -> None:
        if progress.step == STEP_COUNT - 1:
            raise StopError

    torch.manual_seed(5)
    with contextlib.suppress(StopError):
        train(config(STEP_COUNT), digits(), ROTATED, folder=place, network=network(), watch=watch)


def _resumed(place: Path, straight: Path) -> str | None:
    try:
        _run(place)
    except EquicapsError as error:
        return None if str(place) in str(error) else f"{error} does not name the folder"
    ours, theirs = (load_checkpoint(folder)[0] for folder in (place, straight))
    same = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    return None if same else "it has gone on to other weights"
