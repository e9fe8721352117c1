"""Every file that docs/architecture.md names exists; tests/test_architecture.py checks the order of the road."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def absent(text: str) -> list[str]:
    """The files and folders in backticks that are neither in the package nor in the repository."""
    names = re.findall(r"`([\w/]+(?:\.py|\.md|/))`", text)
    return [name for name in names if not any((base / name).exists() for base in (ROOT / "src" / "equicaps", ROOT))]


def test_every_named_file_exists():
    assert absent(TEXT) == []


def test_that_check_notices_a_file_that_is_gone():
    """Control."""
    assert absent("`cli/main.py`, `nn/`, `tests/conftest.py`, `cli/nothing.py` and `nowhere/`") == [
        "cli/nothing.py",
        "nowhere/",
    ]


def test_every_room_is_described():
    rooms = {
        path.stem
        for path in (ROOT / "src" / "equicaps").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert [room for room in sorted(rooms - {"__init__"}) if f"`{room}`" not in TEXT] == []
