"""The idx format of MNIST, gzipped or not."""

import gzip
import hashlib
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equicaps.errors import DamagedFileError


def unpack(content: bytes, name: str | Path) -> bytes:
    """The content of a file, decompressed if it is gzipped."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise DamagedFileError(f"{name} is truncated or corrupted: {error}.") from error


def check_md5(content: bytes, md5: str, name: str | Path) -> None:
    """Raise, naming the file, unless its content has this checksum."""
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if found != md5:
        raise DamagedFileError(
            f"{name} is truncated, corrupted or not the official file: the md5 of its {len(content):,} decompressed "
            f"bytes is {found}, not {md5}. Replace it, or delete it to have it fetched again."
        )


def parse_idx(content: bytes, path: Path) -> NDArray[np.uint8]:
    """The array of bytes that the content of an idx file describes."""
    if len(content) < 4 or content[:3] != b"\x00\x00\x08":
        raise DamagedFileError(
            f"{path} is not an idx file of bytes: it begins with {content[:4].hex(' ') or 'nothing'}."
        )
    dimensions = content[3]
    start = 4 + 4 * dimensions
    shape = tuple(int(side) for side in np.frombuffer(content[4:start], ">u4")) if len(content) >= start else ()
    values = np.frombuffer(content, np.uint8, offset=min(start, len(content)))
    if len(shape) != dimensions or values.size != int(np.prod(shape)):
        raise DamagedFileError(f"{path} is truncated: {values.size} values, but its header says {shape}.")
    return values.reshape(shape).copy()
