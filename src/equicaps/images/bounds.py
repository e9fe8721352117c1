"""What an image may cost: reading any image that is not refused takes less than 1 GB and 5 CPU-seconds."""

import io
from pathlib import Path

from PIL.ImageFile import ImageFile

from equicaps.errors import DamagedFileError

MEGAPIXELS = 50
"""Larger images are refused before they are decoded, because a small file can unpack to gigabytes."""
MEGAPIXELS_OF_WEBP = 30
"""Fewer, because its decoder keeps the image several times."""
SLOW = frozenset({"bmp_rle", "ppm", "ppm_plain"})
"""Pillow's decoders that are written in Python; they need more than a second for each megapixel."""
MEGAPIXELS_OF_SLOW = 3
LONGEST = 65_535
"""The longest side, which is also that of a JPEG."""
SCANS = 100
"""A progressive JPEG usually has ten. Each one visits all pixels, and may have no more than 75 bytes."""
_START_OF_SCAN = b"\xff\xda"
_AT_ONCE = 2**20


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
    if picture.format in ("JPEG", "MPO") and (scans := _scans(file)) > SCANS:
        raise DamagedFileError(f"{name} is refused: it is a JPEG of {scans:,} scans, and the most is {SCANS}.")


def _megapixels(picture: ImageFile) -> int:
    if any(tile[0] in SLOW for tile in picture.tile):
        return MEGAPIXELS_OF_SLOW
    return MEGAPIXELS_OF_WEBP if picture.format == "WEBP" else MEGAPIXELS


def _scans(file: io.BufferedReader | io.BytesIO) -> int:
    """How often a scan starts; the marker cannot stand within one."""
    place, count, last = file.tell(), 0, b""
    file.seek(0)
    while block := file.read(_AT_ONCE):
        count += (last + block).count(_START_OF_SCAN)
        last = block[-1:]
    file.seek(place)
    return count
