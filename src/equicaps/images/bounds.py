"""What an image may cost: bounds that keep the reading of an image below 1 GB and 5 CPU-seconds."""

import io
import re
from pathlib import Path

from PIL.ImageFile import ImageFile

from equicaps.errors import DamagedFileError

MEGAPIXELS = 50
"""Larger images are refused before they are decoded, because a small file can unpack to gigabytes."""
MEGAPIXELS_OF_WEBP = 30
"""Fewer, because its decoder keeps the image several times."""
SLOW = frozenset({"bmp_rle", "ppm", "ppm_plain"})
"""Pillow's decoders that are written in Python; they need more than a second for each megapixel."""
MEGAPIXELS_OF_SLOW = 2
"""So that they stay below the bound on a busy machine, too."""
LONGEST = 65_535
"""The longest side, which is also that of a JPEG."""
SCANS = 100
"""A progressive JPEG usually has ten. Each one visits all pixels, and may have no more than 75 bytes."""
_SCAN, _END = 0xDA, 0xD9
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xDA)})
_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)
"""Within coded pixels, 0xFF is followed by 0, or by a mark of which eight take turns."""
_AT_ONCE = 2**16


def check_cost(picture: ImageFile, file: io.BufferedReader | io.BytesIO, name: Path | str) -> None:
    """Refuse an image of which only the header has been read, if it would take too long or too much memory.

    Raises:
        DamagedFileError: with the bound, and what to do.
    """
    width, height = picture.size
    most = _megapixels(picture)
    if width * height > most * 10**6:
        kind = "" if most == MEGAPIXELS else f" as {picture.format}, compressed in this way"
        raise DamagedFileError(
            f"{name} is refused: {width}x{height} is more than {most} megapixels{kind}; "
            f"{'reduce its size first' if not kind else 'save it as PNG or JPEG, or reduce its size first'}."
        )
    if max(width, height) > LONGEST:
        raise DamagedFileError(
            f"{name} is refused: {width}x{height} is longer than {LONGEST:,} pixels; cut it into pieces first."
        )
    if picture.format in ("JPEG", "MPO") and _scans(file) > SCANS:
        raise DamagedFileError(
            f"{name} is refused: it is a JPEG of more than {SCANS} scans; save it as PNG, or as an ordinary JPEG."
        )


def _megapixels(picture: ImageFile) -> int:
    if any(tile[0] in SLOW for tile in picture.tile):
        return MEGAPIXELS_OF_SLOW
    return MEGAPIXELS_OF_WEBP if picture.format == "WEBP" else MEGAPIXELS


def _scans(file: io.BufferedReader | io.BytesIO) -> int:
    """How many scans the image has, up to the first too many; what follows it, such as a phone's video, is not read."""
    place = file.tell()
    file.seek(2)  # behind the start of the image
    count, marker = 0, _next_marker(file)
    while marker not in (None, _END) and count <= SCANS:
        count += marker == _SCAN
        if marker not in _WITHOUT_LENGTH:
            file.seek(max(0, int.from_bytes(file.read(2)) - 2), io.SEEK_CUR)
        marker = _next_marker(file)
    file.seek(place)
    return count


def _next_marker(file: io.BufferedReader | io.BytesIO) -> int | None:
    """The next marker that is not part of coded pixels; None at the end of the file."""
    rest, size = b"", 2  # usually it follows at once
    while block := file.read(size):
        size = min(2 * size, _AT_ONCE)
        block = rest + block
        for found in _MARKER.finditer(block):
            file.seek(found.end() - len(block), io.SEEK_CUR)
            return found[0][1]
        rest = b"\xff" if block.endswith(b"\xff") else b""
    return None
