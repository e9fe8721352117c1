"""The idx format, gzipped or not."""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equicaps.errors import DamagedFileError


def read_content(path: Path) -> bytes:
    """The file's bytes, unpacked if they are gzipped."""
    content = path.read_bytes()
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFileError(f"{path} is truncated or corrupted: {error}.") from error


def check_md5(content: bytes, md5: str, path: Path) -> None:
    """Refuse content with another checksum, naming its file."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise DamagedFileError(
            f"{path} is truncated, corrupted or not the official file: the md5 of its {len(content):,} unpacked bytes "
            f"is {found}, not {md5}. Delete it and put the right one there, or have it fetched."
        )


def parse_idx(content: bytes, path: Path) -> NDArray[np.uint8]:
    """The array of bytes that idx content describes."""
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DamagedFileError(
            f"{path} is not an idx file of bytes: it begins with {content[:4].hex(' ') or 'nothing'}."
        )
    dimensions = content[3]
    start = 4 + 4 * dimensions
    shape = tuple(int(side) for side in np.frombuffer(content[4:start], ">u4")) if len(content) >= start else ()
    values = np.frombuffer(content, np.uint8, offset=min(start, len(content)))
    if len(shape) != dimensions or values.size != int(np.prod(shape)):
        raise DamagedFileError(f"{path} is truncated: {values.size} values, its header says {shape}.")
    return values.reshape(shape).copy()
