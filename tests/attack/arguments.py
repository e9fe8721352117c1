"""Command lines of words that nobody should write."""

import importlib
import os
from collections.abc import Generator
from pathlib import Path
from random import Random

from typer.testing import CliRunner

from attack.children import outcome
from equicaps.cli.main import COMMANDS, app

GIGABYTES = 3 * 2**30
OPTIONS = {
    "train": ("--preset", "--out", "--steps", "--seed", "--batch", "--rate", "--schedule", "--decay", "--clip", "--ema",
              "--consistency", "--spread", "--reconstruction", "--mirror", "--angles", "--size", "--device",
              "--save-every"),
    "predict": ("--model", "--save", "--out", "--workers", "--engine", "--address"),
    "upright": ("--model", "--out", "--tolerance"),
    "audit": ("--data", "--images", "--step", "--out"),
    "export": ("--to", "--out", "--images"),
    "info": (),
    "data": ("--folder",),
    "bench": ("--seconds", "--batch", "--threads"),
    "serve": ("--port", "--model"),
}  # fmt: skip
FLAGS = (
    "--json",
    "--force",
    "--resume",
    "--upright",
    "--balance",
    "--tensorboard",
    "--other-images",
    "--help",
    "--open",
)
VALUES = ("", " ", "0", "-1", "1", "2", "0.5", "nan", "inf", "-inf", "1e300", str(2**70), "None", "meta", "cpu",
          "[red]x", "\x00", "\x1b[2J", "\udcff", ".", "/", "..", "/dev/zero", "/dev/null", "a/b/c", "x.csv", "s3://",
          "s3://\x00", "digits", "digits!", "digits-paper", "onnx", "ray", "~", "*", "-", "--", "x" * 5000)  # fmt: skip


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """An exit code and at most one line: no stack trace, and an end within two minutes of one thread."""
    for command in COMMANDS:  # once, and not in every process
        importlib.import_module(f"equicaps.cli.{command}")
    for _ in range(count):
        words = _words(random, folder)
        found = outcome(lambda words=words: _call(words, folder), folder / "report", seconds=120, memory=GIGABYTES)
        yield found and f"equicaps {' '.join(map(repr, words))}: {found}"


def _words(random: Random, folder: Path) -> list[str]:
    command = random.choice(COMMANDS)
    words = [command]
    if random.random() < 0.7:
        words.append(random.choice((*VALUES, "digits", str(folder / "pets"), str(folder / "pets" / "cat" / "0.png"))))
    for _ in range(random.randint(0, 4)):
        name = random.choice(OPTIONS[command] or FLAGS) if random.random() < 0.8 else random.choice(FLAGS)
        words += [name] if name in FLAGS else [name, random.choice(VALUES)]
    if command == "train":  # what is accepted ends soon
        words += ["--steps", "1"]
    if command == "serve":  # with a port that it may use it would wait for somebody
        words += ["--port", random.choice(("-1", "65536", "1e3", "x"))]
    if command == "bench":
        words += ["--seconds", random.choice(("0", "-1", "nan", "0.1"))]
    return words


def _call(words: list[str], folder: Path) -> str | None:
    os.chdir(folder)
    os.environ["EQUICAPS_OFFLINE"] = "1"
    result = CliRunner().invoke(app, words)
    shown = result.output
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}: {result.exception!r}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{result.exception!r}"
    if "Traceback" in shown or any(not (sign.isprintable() or sign.isspace()) for sign in shown):
        return f"it shows {shown[-300:]!r}"
    return None
