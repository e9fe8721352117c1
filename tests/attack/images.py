"""Damaged image files, programs and pipes that are named like images."""

import io
import json
import os
from collections.abc import Generator
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image

from attack.children import outcome
from attack.damage import damaged
from equicaps.errors import DamagedFileError
from equicaps.images.decode import FORMATS, image_size, read_pixels
from equicaps.images.preparation import ImageFormat, prepare

AT_ONCE = 25
ROUNDING = 1e-6
POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 30 30\n%%EndComments\n(/tmp/equicaps-was-here) (w) file\n"


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Every file is read as an image of finite values, or refused by name."""
    originals = [_image(random, kind) for kind in FORMATS for _ in range(3)]
    for start in range(0, count, AT_ONCE):
        contents = [_hostile(random, originals) for _ in range(min(AT_ONCE, count - start))]
        found = outcome(lambda contents=contents: _all(folder, contents), folder / "report", seconds=60)
        yield from json.loads(found) if found and found.startswith("[") else [found] * len(contents)


def _all(folder: Path, contents: list[bytes]) -> str:
    """The outcome of each; if the process ends before, none of them counts as survived."""
    return json.dumps([_one(folder / "image.png", content) for content in contents])


def _one(path: Path, content: bytes) -> str | None:
    path.write_bytes(content)
    try:
        image_size(path)
        pixels, ready = read_pixels(path), prepare(path, ImageFormat(3, 32, 32))
    except DamagedFileError as error:
        return None if "image.png" in str(error) else f"{error} does not name the file"
    except OSError as error:
        return f"{error!r} is no error of this library"
    right = (
        pixels.ndim == 3
        and pixels.shape[0] in (1, 3)
        and ready.isfinite().all()
        and -ROUNDING < ready.min() <= ready.max() < 1 + ROUNDING
    )
    return None if right else f"{content[:40]!r} gave {tuple(pixels.shape)}, {ready.min()} to {ready.max()}"


def _image(random: Random, kind: str) -> bytes:
    shape = random.choice(((24, 17, 3), (40, 40), (1, 300, 3), (64, 64, 3)))
    picture = Image.fromarray(np.frombuffer(random.randbytes(int(np.prod(shape))), np.uint8).reshape(shape))
    file = io.BytesIO()
    picture.save(file, format=kind)
    return file.getvalue()


def _hostile(random: Random, originals: list[bytes]) -> bytes:
    choice = random.random()
    if choice < 0.04:
        return POSTSCRIPT
    if choice < 0.08:
        return random.randbytes(random.randrange(300))
    return damaged(random, random.choice(originals))


def pipes(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """A pipe or a device is refused, and not waited for."""
    for number in range(count):
        path = folder / f"pipe-{number}.png"
        os.mkfifo(path)
        given = random.choice((path, Path("/dev/zero"), Path("/dev/stdin"), folder))
        yield outcome(lambda given=given: _refused(given), folder / "report", seconds=10)
        path.unlink()


def _refused(path: Path) -> str | None:
    try:
        read_pixels(path)
    except OSError:
        return None
    return f"{path} was read"
