"""What a shape may cost: bounds that keep the reading of a file below 2 GB and 20 CPU-seconds.

A million faces can be read from every format but ASCII STL, which takes six times as much space as any other.
"""

import re
from pathlib import Path

import numpy as np

from equicaps.errors import DamagedFileError

MOST_FACES = 1_500_000
MOST_POINTS = 3 * MOST_FACES
MOST_BYTES = 256_000_000
"""Larger files are not read at all."""
MOST_BYTES_OF_TEXT = 128_000_000
"""Fewer, because text is kept several times while it is read."""
MOST_WORDS = 12_000_000
"""Numbers and other words of a text, which become objects of 50 bytes and more."""

_COUNTS = {
    ".off": {
        "points": re.compile(rb"\A(?:\s|#.*\n)*C?OFF(?:\s|#.*\n)*(\d+)"),
        "faces": re.compile(rb"\A(?:\s|#.*\n)*C?OFF(?:\s|#.*\n)*\d+\s+(\d+)"),
    },
    ".ply": {
        "points": re.compile(rb"^element\s+vertex\s+(\d+)", re.MULTILINE),
        "faces": re.compile(rb"^element\s+face\s+(\d+)", re.MULTILINE),
    },
}
"""Where headers announce how many points and faces there are."""
_HEADER = 65_536
_STL_HEADER, _STL_FACE = 84, 50


def check_size(path: Path) -> None:
    """Refuse a file that is too large to be read."""
    if (size := path.stat().st_size) > MOST_BYTES:
        raise DamagedFileError(
            f"{path} is refused: it has {size // 10**6:,} MB, more than {MOST_BYTES // 10**6}; simplify it first."
        )


def check_cost(path: Path | str, kind: str, content: bytes) -> None:
    """Refuse a file that has been read, but not parsed, if that would take too long or too much memory.

    Args:
        path: for messages.
        kind: the suffix.
        content: of the file.
    """
    for what, most in (("points", MOST_POINTS), ("faces", MOST_FACES)):
        check_count(path, announced(kind, content, what), what, most)
    if not _is_text(kind, content):
        return
    blank = np.frombuffer(content, np.uint8) <= ord(" ")
    words = int(np.count_nonzero(blank[:-1] > blank[1:])) + int(not blank[0])
    if len(content) > MOST_BYTES_OF_TEXT or words > MOST_WORDS:
        raise DamagedFileError(
            f"{path} is refused: {len(content) // 10**6:,} MB of text with {words:,} words, where at most "
            f"{MOST_BYTES_OF_TEXT // 10**6} MB and {MOST_WORDS:,} words are read; save it as binary PLY, binary STL or "
            "NPY, or simplify the shape first."
        )


def check_count(path: Path | str, count: int, what: str, most: int) -> None:
    """Refuse a shape of too many points or faces."""
    if count > most:
        raise DamagedFileError(f"{path} is refused: it has {count:,} {what}, more than {most:,}; simplify it first.")


def announced(kind: str, content: bytes, what: str) -> int:
    """How many points or faces the header of a file announces; 0 if it does not say."""
    if kind == ".stl":
        return (len(content) - _STL_HEADER) // _STL_FACE if what == "faces" and _is_binary_stl(content) else 0
    found = _COUNTS[kind][what].search(_header(content)) if kind in _COUNTS else None
    return int(found[1][:18]) if found else 0  # so many digits say enough


def _header(content: bytes) -> bytes:
    return content[:_HEADER].partition(b"end_header")[0]


def _is_text(kind: str, content: bytes) -> bool:
    if kind == ".ply":
        return b"ascii" in _header(content).lower()
    return kind != ".stl" or not _is_binary_stl(content)


def _is_binary_stl(content: bytes) -> bool:
    return len(content) == _STL_HEADER + _STL_FACE * int.from_bytes(content[80:_STL_HEADER], "little")
