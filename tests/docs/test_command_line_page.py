"""Every command and option on the page exists, and the cheapest command prints what the page shows."""

import re
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from equicaps.cli.main import app

PAGE = Path(__file__).parents[2] / "docs" / "command_line.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = re.findall(r"(?:^\$ |`)(equicaps [a-z]+[^`\n]*)", TEXT, re.MULTILINE)
COMMANDS = get_command(app).commands


def check(line):
    _, name, *words = line.split()
    options = {option for parameter in COMMANDS[name].params for option in (*parameter.opts, *parameter.secondary_opts)}
    return all(word in options for word in words if word.startswith("--"))


@pytest.mark.parametrize("line", sorted(set(SHOWN)))
def test_shown_commands_and_options_exist(line):
    assert check(line)


def test_options_that_do_not_exist_are_noticed():
    """Control."""
    assert not check("equicaps predict --sideways")
    with pytest.raises(KeyError):
        check("equicaps prophesy")


def test_every_command_has_a_section():
    assert [name for name in COMMANDS if f"\n## {name}\n" not in TEXT] == []


def test_the_cheap_command_prints_what_the_page_shows():
    [shown] = re.findall(r"\$ equicaps data digits\n(.*?)```", TEXT, re.DOTALL)
    assert CliRunner().invoke(app, ["data", "digits"]).stdout == shown
