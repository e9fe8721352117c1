"""Run every command that a page shows and insert what it prints; takes about two CPU-minutes.

Run: python docs/make_command_line.py [galaxies.md], by default for command_line.md.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from PIL import Image

from equicaps.data import embedded_digits
from equicaps.images import rotate

DOCS = Path(__file__).parent
BEFORE = {
    "galaxies.md": (
        "equicaps.cli.main train galaxies --balance --steps 140 --out runs/galaxies",
        "reproduction galaxies --png sources",
    )
}
"""The programs that make what the commands of a page need."""


def main() -> None:
    page = DOCS / (sys.argv[1] if len(sys.argv) > 1 else "command_line.md")
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        make_images(here / "images")
        for program in BEFORE.get(page.name, ()):
            print(program, flush=True)
            subprocess.run([sys.executable, "-m", *program.split()], cwd=here, check=True)

        def run(block: re.Match[str]) -> str:
            command = block[1]
            print(command, flush=True)
            environment = {**os.environ, "COLUMNS": "110", "OMP_NUM_THREADS": "1"}
            program = [sys.executable, "-m", "equicaps.cli.main", *command.split()[1:]]
            if command.startswith("equicaps serve"):
                return f"```console\n$ {command}\n{first_line(program, here, environment)}```"
            done = subprocess.run(program, cwd=here, env=environment, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
            return f"```console\n$ {command}\n{printed}\n```"

        text = re.sub(r"```console\n\$ (equicaps .*)\n(?:.*\n)*?```", run, page.read_text(encoding="utf-8"))
    page.write_text(text, encoding="utf-8")


def first_line(program: list[str], folder: Path, environment: dict[str, str]) -> str:
    """The first line that a program prints which runs until Ctrl-C."""
    with subprocess.Popen(program, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
    return line


def make_images(folder: Path) -> None:
    """Write some test digits as PNG, each rotated by the angle in its name."""
    folder.mkdir()
    digits = embedded_digits("test")
    for index, degrees in ((0, 0), (3, 30), (8, 90), (40, -120), (4, 180)):
        rotated = rotate(digits.images[index : index + 1], torch.tensor([float(degrees)]))[0, 0]
        name = f"{digits.classes[digits.labels[index]]}_rotated_by_{degrees}.png"
        Image.fromarray((rotated * 255).round().byte().numpy()).save(folder / name)


if __name__ == "__main__":
    main()
