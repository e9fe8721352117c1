"""The options and the help of every command, one file each, without torch, whose import alone takes seconds.

What the help says about models, presets, data sets and defaults is repeated here as text; ``tests/cli/test_options.py``
compares it with what the library says.
"""

from typing import Annotated

import typer

MODELS = "digits, digits-paper, digits-upright, digits-plain, modelnet10"
PRESETS = (
    "steerable, steerable_capsules, steerable_cnn, paper, capsules_only, plain_cnn, paper_gaussian, paper_pooled, "
    "paper_iterated"
)
POINT_PRESETS = "points, points-paper"
SHAPES = ".npy, .obj, .off, .ply, .stl, .xyz"
DATA_SETS = "digits, mnist, mnist_rot, affnist, galaxies, modelnet10"
DATA = (
    "A data set (digits, mnist, galaxies; digits is in the package), a FOLDER with one folder per class, or a CSV "
    f"file; for shapes modelnet10, or a folder of {SHAPES}."
)
DEFAULT_DATA = "digits"
"""The images of a command that is told nothing else; the option's default is None, so that it can be named, too."""

ModelOption = Annotated[
    str, typer.Option("--model", "-m", help=f"A shipped model ({MODELS}), or a file or folder of yours.")
]
Checkpoint = Annotated[str, typer.Argument(help=f"A shipped model ({MODELS}), or a file or folder.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on standard output.")]
Data = Annotated[str | None, typer.Option(help=DATA, show_default=f"{DEFAULT_DATA}; for shapes none")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing results (but never an input).")]
