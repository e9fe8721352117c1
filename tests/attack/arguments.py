"""Command lines of words that nobody should write."""

import importlib
import os
from collections.abc import Generator
from pathlib import Path
from random import Random
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from attack.children import outcome
from equicaps.cli.main import COMMANDS, app

GIGABYTES = 3 * 2**30
VALUES = ("", " ", "0", "-1", "1", "2", "0.5", "nan", "inf", "-inf", "1e300", str(2**70), "None", "meta", "cpu",
          "[red]x", "\x00", "\x1b[2J", "\udcff", ".", "..", "/dev/zero", "/dev/null", "a/b/c", "x.csv", "s3://",
          "s3://\x00", "digits", "digits!", "digits-paper", "onnx", "ray", "~", "*", "-", "--", "x" * 5000)  # fmt: skip
FEW = {"--processes": ("0", "-1", "nan", "inf", "", str(2**70))}
"""Where the other values would only start many processes."""


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """An exit code and plain text: no stack trace, and an end within some minutes on a busy machine."""
    for command in COMMANDS:  # once, and not in every process
        importlib.import_module(f"equicaps.cli.{command}")
    options = _options()
    for _ in range(count):
        words = _words(random, folder, options)
        found = outcome(lambda words=words: _call(words, folder), folder / "report", seconds=400, memory=GIGABYTES)
        yield found and f"equicaps {' '.join(map(repr, words))}: {found}"


def _options() -> dict[str, dict[str, bool]]:
    """Command -> its options, and whether they are flags."""
    group: Any = get_command(app)
    return {
        name: {
            option: bool(parameter.is_flag)
            for parameter in command.params
            if parameter.param_type_name == "option"
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        for name, command in group.commands.items()
    }


def _words(random: Random, folder: Path, options: dict[str, dict[str, bool]]) -> list[str]:
    command = random.choice(COMMANDS)
    words = [command]
    if random.random() < 0.7:
        words.append(random.choice((*VALUES, "digits", str(folder / "pets"), str(folder / "pets" / "cat" / "0.png"))))
    for _ in range(random.randint(0, 4)):
        everything = [*options[command], "--help", "--no-such-option"]
        name = random.choice(everything)
        words += [name] if options[command].get(name, True) else [name, random.choice(FEW.get(name, VALUES))]
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
    result = CliRunner().invoke(app, words, color=True)  # otherwise escape sequences are removed
    shown = result.output
    if result.exit_code not in (0, 1, 2):
        return f"exit code {result.exit_code}: {result.exception!r}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"{result.exception!r}"
    if "Traceback" in shown or any(not (sign.isprintable() or sign.isspace()) for sign in shown):
        return f"it shows {shown[-300:]!r}"
    return None
