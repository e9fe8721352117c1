"""Whole image files that were made to take long, or much memory."""

import io
import struct
import time
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random

from PIL import Image

from attack.children import outcome
from equicaps.errors import DamagedFileError
from equicaps.images.preparation import ImageFormat, prepare

CPU_SECONDS = 5
QUARTER_TURN = 6
"""The number for it in EXIF data."""


def attack(random: Random, count: int, folder: Path) -> Generator[str | None]:
    """Each is prepared within a gigabyte and five CPU-seconds, or refused by name."""
    for number in range(count):
        make = MAKERS[number % len(MAKERS)]
        path = folder / "image.png"
        path.write_bytes(make(random))
        found = outcome(lambda path=path: _prepared(path), folder / "report", seconds=60)
        yield found and f"{make.__name__}: {found}"


def _prepared(path: Path) -> str | None:
    started = time.process_time()
    try:
        prepare(path, ImageFormat(3, 32, 32))
    except DamagedFileError as error:
        if path.name not in str(error):
            return f"{error} does not name the file"
    seconds = time.process_time() - started
    return f"took {seconds:.1f} CPU-seconds" if seconds > CPU_SECONDS else None


def _blank(random: Random, mode: str, megapixels: float = 50.0) -> Image.Image:
    """Up to a fifth more than is allowed; long and narrow, or not."""
    pixels = megapixels * 1e6 * random.uniform(0.5, 1.2)
    width = round((pixels * random.choice((0.01, 1, 1, 100))) ** 0.5)
    return Image.new(mode, (width, round(pixels / width)), 1)


def _saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    turned = Image.Exif()
    turned[0x0112] = QUARTER_TURN
    file = io.BytesIO()
    picture.save(file, format=kind, exif=turned, **options)
    return file.getvalue()


def _png(random: Random) -> bytes:
    mode = random.choice(("1", "L", "LA", "P", "RGB", "RGBA", "I;16"))
    return _saved(_blank(random, mode), "PNG", compress_level=1)


def _tiff(random: Random) -> bytes:
    picture = _blank(random, random.choice(("L", "RGB", "RGBA", "CMYK")))
    return _saved(picture, "TIFF", compression=random.choice(("tiff_lzw", "tiff_adobe_deflate", "packbits")))


def _webp(random: Random) -> bytes:
    side = round((30e6 * random.uniform(0.5, 1.2)) ** 0.5)
    return _saved(Image.new("RGBA", (side, side), 1), "WEBP", lossless=True, method=0)


def _jpeg(random: Random) -> bytes:
    """With as many copies of the last scan as one likes."""
    picture = _blank(random, random.choice(("L", "RGB", "CMYK")))
    if max(picture.size) > 65_500:
        picture = picture.crop((0, 0, 65_500, 500))
    content = _saved(picture, "JPEG", progressive=True, subsampling=0)
    last = content.rindex(b"\xff\xda")
    return content[:last] + content[last:-2] * random.choice((1, 60, 5000)) + content[-2:]


def _bmp(random: Random) -> bytes:
    """Runs of one pixel each."""
    side = round((2e6 * random.uniform(0.5, 1.2)) ** 0.5)
    pixels = (b"\1\7" * side + b"\0\0") * side + b"\0\1"
    start = 14 + 40 + 4 * 256
    header = struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start)
    header += struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, len(pixels), 0, 0, 256, 0)
    return header + bytes(range(256)) * 4 + pixels


def _ppm(random: Random) -> bytes:
    """With a largest value, or in decimal numbers, which Pillow reads pixel by pixel."""
    side = round((2e6 * random.uniform(0.5, 1.2)) ** 0.5)
    if random.random() < 0.5:
        return b"P6 %d %d 200\n" % (side, side) + bytes(3 * side * side)
    return b"P3 %d %d 255\n" % (side, side) + b"7 " * 3 * side * side


def _thin(random: Random) -> bytes:
    """Enlarged to a square, it would have a billion pixels."""
    size = (random.randint(20_000, 70_000), 1)
    return _saved(Image.new("L", random.choice((size, size[::-1])), 1), "PNG")


MAKERS: tuple[Callable[[Random], bytes], ...] = (_jpeg, _webp, _ppm, _thin, _bmp, _png, _tiff)
