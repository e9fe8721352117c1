"""The images of a folder, decoded once, reduced to the side that is needed, and kept as a file in the cache.

So any number of photographs needs little memory: the file is mapped into it, and all processes share the map. It holds
the pixels of every image, then a description in JSON, then the length of that and a checksum of both.
"""

import contextlib
import hashlib
import json
import logging
import os
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from equicaps._cache import cache_folder
from equicaps._files import lock_folder, written
from equicaps.data.damaged import or_error, refuse
from equicaps.errors import EquicapsError, FileError
from equicaps.images.ahead import PIXELS, Room, ahead
from equicaps.images.background import brightness
from equicaps.images.preparation import ImageFormat, fit, with_channels
from equicaps.images.stored import StoredImages

_log = logging.getLogger(__name__)
Watch = Callable[[int, int], None]
"""Is called with how many images have been decoded, and how many there are."""
FOLDER, FILE = "folders", "images.bin"
KEPT_DAYS = 90
"""Files that nobody has used for so long are deleted when another one is written."""
WORKERS = 4
"""How many threads decode."""
UNSETTLED = 2.0
"""A file that was changed within so many seconds of being read could be changed again and keep its time."""
CODE = {
    "equicaps.images": ("background.py", "decode.py", "preparation.py", "resizing.py"),
    "equicaps.models": ("sizes.py",),
    "equicaps.data": ("reduced.py",),
}
"""What prepares images: when it changes, stored ones are prepared anew."""
_TAIL = struct.Struct("<QI")
_CHUNK = 2**20


class Side(NamedTuple):
    """How images are prepared: see :class:`ImageFormat`; without channels, each image in its own colours."""

    channels: int | None
    size: int
    frame: int


class Reduced(NamedTuple):
    """Images in the order of their files, and what is known about them."""

    images: StoredImages
    sizes: list[tuple[int, int]]
    """Width and height of each image, as its header states them."""
    brightnesses: Float[Tensor, " n"]
    """The brightness of each image's own background."""


def reduced(root: Path, files: Sequence[Path], to: Side, watch: Watch | None = None) -> Reduced:
    """Images of bytes, or of 16 bits if any of the files has them; from the cache, unless anything has changed.

    A change is noticed by the names, sizes and times of the files. Other processes that want the same images wait until
    they are there. They have three channels if any image has colours.

    Args:
        root: the folder or list that the files belong to; each root and format has one file in the cache.
        files: image files, each once.
        to: how to prepare them.
        watch: is called after every image, if images have to be decoded.
    """
    name = hashlib.sha256(repr((str(root.resolve()), to)).encode(errors="surrogateescape")).hexdigest()[:32]
    place = cache_folder() / FOLDER / name
    started = time.time()
    changed = [(str(file), *_stamp(file)) for file in files]
    key = hashlib.sha256(repr((changed, to, _code())).encode(errors="surrogateescape")).hexdigest()
    if found := _opened(place / FILE, key):
        return found
    settled = all(abs(started - when / 1e9) > UNSETTLED for _, _, when in changed)
    try:
        with lock_folder(place, wait=True):
            if found := _opened(place / FILE, key):  # another process has written it in the meantime
                return found
            _log.info("reading %d images of %s into %s", len(files), root, place)
            _delete_old(place.parent)
            _write(place / FILE, files, to, {"key": key, "settled": settled}, watch)
            if found := _opened(place / FILE, key, fresh=True):
                return found
    except FileError as error:
        if str(place) in str(error):
            raise FileError(f"{error} Or name another folder for the cache in EQUICAPS_CACHE.") from error
        raise
    raise FileError(f"{place / FILE} cannot be read back: is the disk damaged? Name another one in EQUICAPS_CACHE.")


def _stamp(file: Path) -> tuple[int, int]:
    """Size and time of the last change, in nanoseconds."""
    found = file.stat()
    return found.st_size, found.st_mtime_ns


def _code() -> str:
    """A checksum of the code that prepares images."""
    sources = (resources.files(package) / file for package, names in CODE.items() for file in names)
    return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()


def _write(path: Path, files: Sequence[Path], to: Side, description: dict[str, Any], watch: Watch | None) -> None:
    from equicaps.images.decode import Header, image_header

    found = [(file, or_error(image_header, file)) for file in files]
    whole = [(file, header) for file, header in found if isinstance(header, Header)]
    damaged = [header for _, header in found if isinstance(header, EquicapsError)]
    if not whole:
        refuse(damaged, of=len(files))
    headers = [header for _, header in whole]
    kind = np.dtype(np.uint16 if any(header.deep for header in headers) else np.uint8)
    shape = (len(files), to.channels or max(header.channels for header in headers), to.size, to.size)
    _check_space(path.parent, int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
    room = Room(PIXELS)

    def read(image: tuple[Path, Header]) -> _Prepared | EquicapsError:
        file, header = image
        prepare = partial(_prepared, file, to, shape[1], kind)
        return or_error(partial(room.run, header.width * header.height), prepare)

    channels, brightnesses, checksum = 1, [], 0
    with written(path) as stored:
        images = ahead(read, whole, workers=WORKERS, limit=2 * WORKERS)
        for number, image in enumerate(images, 1):
            if watch:
                watch(number, len(files))
            if isinstance(image, EquicapsError):
                damaged.append(image)
                continue
            content = image.pixels.tobytes()
            stored.write(content)
            checksum = zlib.crc32(content, checksum)
            channels = max(channels, image.channels)
            brightnesses.append(image.brightness)
        refuse(damaged, of=len(files))
        sizes = [(header.width, header.height) for header in headers]
        seen = {"channels": to.channels or channels, "sizes": sizes, "brightnesses": brightnesses}
        text = json.dumps({**description, "shape": shape, "kind": kind.name, **seen}).encode()
        stored.write(text)
        stored.write(_TAIL.pack(len(text), zlib.crc32(text, checksum)))


def _delete_old(folder: Path) -> None:
    """Delete the files of all roots that have not been used for :data:`KEPT_DAYS` days; mapped ones stay readable."""
    for file in folder.glob(f"*/{FILE}"):
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime > KEPT_DAYS * 86400:
                file.unlink()


def _check_space(folder: Path, needed: int) -> None:
    """Before many images are decoded, see whether they fit on the disk."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FileError(
            f"the reduced images need {needed / 1e9:.1f} GB in {folder}, where the disk is full but for "
            f"{free / 1e9:.1f} GB. Free some space."
        )


class _Prepared(NamedTuple):
    pixels: Shaped[np.ndarray, "channels size size"]
    brightness: float
    channels: int
    """1 if the image is grey."""


def _prepared(file: Path, to: Side, channels: int, kind: "np.dtype[Any]") -> _Prepared:
    """An image, prepared as for a prediction, and rounded."""
    from equicaps.images.decode import read_pixels

    try:
        image = read_pixels(file).unsqueeze(0)
    except OSError as error:
        if isinstance(error, EquicapsError):
            raise
        raise FileError(f"cannot read {file}: {error.strerror or error}.") from error
    fitted = fit(image, ImageFormat(to.channels or image.shape[1], to.size, to.frame))
    values = with_channels(fitted, channels)[0].numpy() * np.iinfo(kind).max
    pixels = values.round().clip(0, np.iinfo(kind).max).astype(kind)
    return _Prepared(pixels, float(brightness(image)), image.shape[1])


def _opened(path: Path, key: str, *, fresh: bool = False) -> Reduced | None:
    """What the file holds, if it is complete and undamaged and has this key; files must have settled, or be fresh."""
    try:
        with path.open("rb") as file:
            text = _description(file)
            found = json.loads(text) if text else {}
            if found.get("key") != key or not (found["settled"] or fresh):
                return None
            pixels = np.memmap(file, found["kind"], "r", shape=tuple(found["shape"]))
        with contextlib.suppress(OSError):
            os.utime(path)  # it is in use
    except (OSError, ValueError):
        return None
    shown = np.asarray(pixels)[:, : found["channels"]]
    images = StoredImages(shown, torch.arange(len(shown)))
    return Reduced(images, [(width, height) for width, height in found["sizes"]], torch.tensor(found["brightnesses"]))


def _description(file: BinaryIO) -> bytes:
    """The text behind the pixels, or nothing if the checksum does not match."""
    end = file.seek(0, 2) - _TAIL.size
    if end < 0:
        return b""
    file.seek(end)
    length, expected = _TAIL.unpack(file.read())
    if length > end:
        return b""
    file.seek(0)
    checksum, left = 0, end - length
    while left:
        chunk = file.read(min(left, _CHUNK))
        checksum, left = zlib.crc32(chunk, checksum), left - len(chunk)
    text = file.read(length)
    return text if zlib.crc32(text, checksum) == expected else b""
