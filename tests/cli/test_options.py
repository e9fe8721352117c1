"""The help of every command is quick, because it does not import torch, and says what the library says."""

import importlib
import inspect
import os
import subprocess
import sys
from typing import get_type_hints

import pytest
from typer.main import get_command

from equicaps.cli import options
from equicaps.cli.main import COMMANDS, app
from equicaps.cli.train import DEFAULTS
from equicaps.data.by_name import NAMES
from equicaps.data.catalogue import CATALOGUE, SHAPE_CATALOGUE
from equicaps.data.shape_files import SHAPE_SUFFIXES
from equicaps.data.shapes_by_name import SHAPE_NAMES
from equicaps.inference import SHIPPED
from equicaps.models import POINT_PRESETS, PRESETS
from equicaps.training.shape_setup import SHAPE_DEFAULTS

CPU_SECONDS = 0.7


def run(*words, program="from equicaps.cli.main import app; app()"):
    """Run the program; returns its exit code, what it printed, and the CPU-seconds that it took."""
    with subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, printed, usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("command", COMMANDS)
def test_help_takes_little_time(command):
    """The better of two runs: files may have to be read from the disk first."""
    runs = [run(command, "--help") for _ in range(2)]
    assert all(code == 0 and "--help" in printed for code, printed, _ in runs)
    assert min(seconds for _, _, seconds in runs) < CPU_SECONDS


def test_that_limit_is_exceeded_by_an_import_of_torch():
    """Control."""
    code, _, seconds = run("predict", "--help", program="import torch; from equicaps.cli.main import app; app()")
    assert code == 0
    assert seconds > CPU_SECONDS


@pytest.mark.parametrize(
    ("words", "code"), [(["--help"], 0), (["train", "--help"], 0), (["--version"], 0), (["prdict"], 2), (["--loud"], 2)]
)
def test_help_and_wrong_words_do_not_wait_for_torch(words, code):
    program = (
        "import sys; from equicaps.cli.main import app\n"
        "try: app()\n"
        "except SystemExit as end: print('torch' in sys.modules, end.code)"
    )
    assert run(*words, program=program)[1].splitlines()[-1] == f"False {code}"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_exactly_the_options_that_are_declared(command):
    """Their names, in order, and their types; the defaults are declared only."""
    functions = [
        getattr(importlib.import_module(f"equicaps.cli.{place}{command}"), command) for place in ("options.", "")
    ]
    assert get_type_hints(functions[0]) == get_type_hints(functions[1])
    declared, carried_out = (inspect.signature(function).parameters.values() for function in functions)
    assert [parameter.name for parameter in declared] == [parameter.name for parameter in carried_out]
    assert all(parameter.default is parameter.empty for parameter in carried_out)


@pytest.mark.parametrize(("command", "of_shapes"), [("audit", "none"), ("export", "generated solids")])
def test_help_tells_the_default_of_data_although_it_is_none(command, of_shapes):
    [option] = [option for option in get_command(app).commands[command].params if option.name == "data"]
    assert option.default is None
    assert option.show_default == f"digits; for shapes {of_shapes}"


def test_help_names_what_there_is():
    assert options.MODELS.split(", ") == list(SHIPPED)
    assert options.PRESETS.split(", ") == list(PRESETS)
    assert options.DATA_SETS.split(", ") == [*CATALOGUE, *SHAPE_CATALOGUE]
    assert tuple(SHAPE_CATALOGUE) == SHAPE_NAMES
    assert f"({', '.join(NAMES)};" in options.DATA
    assert options.POINT_PRESETS.split(", ") == list(POINT_PRESETS)
    assert options.SHAPES.split(", ") == sorted(SHAPE_SUFFIXES)
    assert f"for shapes {', '.join(SHAPE_NAMES)}, or" in options.DATA


def test_help_shows_the_defaults_of_a_training():
    shown = {
        parameter.name: parameter.show_default
        for parameter in get_command(app).commands["train"].params
        if isinstance(parameter.show_default, str)
    }
    assert shown == {
        "preset": f"{DEFAULTS.model.preset}, for shapes {SHAPE_DEFAULTS.model.preset}",
        "out": "runs/DATA-PRESET",
        "minutes": f"as many as help, at most {DEFAULTS.budget.up_to_minutes:g}",
        "seed": str(DEFAULTS.seed),
        "batch": f"{DEFAULTS.batch}, for shapes {SHAPE_DEFAULTS.batch}",
        "rate": f"{DEFAULTS.optimiser.rate}, for shapes {SHAPE_DEFAULTS.optimiser.rate}",
        "schedule": DEFAULTS.optimiser.schedule,
        "decay": f"{DEFAULTS.optimiser.weight_decay}, for shapes {SHAPE_DEFAULTS.optimiser.weight_decay}",
        "clip": f"no clipping, for shapes {SHAPE_DEFAULTS.optimiser.clip}",
        "consistency": f"{DEFAULTS.objective.consistency}, for shapes {SHAPE_DEFAULTS.objective.consistency}",
        "spread": str(DEFAULTS.objective.spread),
        "reconstruction": str(DEFAULTS.objective.reconstruction),
        "mirror": DEFAULTS.model.mirror,
        "size": f"{DEFAULTS.model.image_size}, for folders near theirs",
        "device": DEFAULTS.hardware.device,
        "save_every": str(DEFAULTS.intervals.checkpoint_seconds / 60),
    }
    assert DEFAULTS.optimiser.clip is None
    assert DEFAULTS.objective.spread == SHAPE_DEFAULTS.objective.spread
    assert DEFAULTS.intervals == SHAPE_DEFAULTS.intervals
    assert DEFAULTS.budget == SHAPE_DEFAULTS.budget
    assert DEFAULTS.optimiser.schedule == SHAPE_DEFAULTS.optimiser.schedule
