"""Pictures for people: a pose as an arrow, images set upright, before and after; needs Pillow."""

import io
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise ImportError("Pictures need Pillow: pip install 'equicaps[data]'.") from error

ARROW, PAPER, INK = (230, 60, 40), (255, 255, 255), (30, 30, 30)
TILE, CAPTION, GAP = 96, 16, 8
COLUMNS = 6
SMALLEST = 256
"""Side to which small pictures are enlarged before an arrow is drawn on them."""

_TURNS = {1: Image.Transpose.ROTATE_90, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_270}


class Pair(NamedTuple):
    """A picture before and after, with a caption."""

    before: Image.Image
    after: Image.Image
    caption: str


def turn_back(picture: Image.Image, degrees: float, *, tolerance: float = 0.0, expand: bool = False) -> Image.Image:
    """The picture turned clockwise by ``degrees``, in its own mode and resolution.

    Whole quarter turns move pixels without loss. The rest, at most 45 degrees, is interpolated in the frame it then
    has, on black (transparent where the picture can be), unless it is within ``tolerance``: then it is left out.
    Pictures with a palette or of one bit are not smoothed, to stay what they are.

    Args:
        picture: of any mode.
        degrees: by which the picture is turned counter-clockwise.
        tolerance: in degrees.
        expand: enlarge the frame so that no corner is cut off.
    """
    quarters = round(degrees / 90)
    rest = degrees - 90 * quarters
    turned = picture.transpose(_TURNS[-quarters % 4]) if quarters % 4 else picture.copy()
    if abs(rest) <= tolerance:
        return turned
    if turned.mode in ("1", "P"):
        fill = _darkest(turned) if turned.mode == "P" else 0
        return turned.rotate(-rest, Image.Resampling.NEAREST, expand=expand, fillcolor=fill)
    if turned.mode.startswith("I"):  # 16 bits, which Pillow does not smooth
        values = np.asarray(turned)
        floats = Image.fromarray(values.astype(np.float32)).rotate(-rest, Image.Resampling.BICUBIC, expand=expand)
        top = np.iinfo(values.dtype).max if values.dtype.kind in "ui" else 65535
        return Image.fromarray(np.clip(np.rint(np.asarray(floats)), 0, top).astype(values.dtype))
    return turned.rotate(-rest, Image.Resampling.BICUBIC, expand=expand)


def _darkest(picture: Image.Image) -> int:
    """The palette's entry for the ground: its transparent one, or the darkest."""
    transparent = picture.info.get("transparency")
    if isinstance(transparent, int):
        return transparent
    palette = picture.getpalette() or [0, 0, 0]
    return min(range(len(palette) // 3), key=lambda k: sum(palette[3 * k : 3 * k + 3]))


def draw_pose(picture: Image.Image, degrees: float | None, caption: str) -> Image.Image:
    """The picture, enlarged if it is small, with an arrow towards its own up, and a caption below.

    At 0 degrees the arrow points to the top, at 90 (a quarter turn counter-clockwise) to the left. No arrow without a
    pose.
    """
    shown = _visible(picture)
    factor = max(1, math.ceil(SMALLEST / max(shown.size)))
    shown = shown.resize((shown.width * factor, shown.height * factor), Image.Resampling.NEAREST)
    size = max(14, min(shown.size) // 16)
    sheet = Image.new("RGB", (shown.width, shown.height + 2 * size), PAPER)
    sheet.paste(shown, (0, 0))
    pen = ImageDraw.Draw(sheet)
    if degrees is not None:
        _arrow(pen, (shown.width / 2, shown.height / 2), 0.42 * min(shown.size), degrees + 90)
    pen.text((size // 2, shown.height + size // 3), caption, fill=INK, font=ImageFont.load_default(size))
    return sheet


def contact_sheet(pairs: Sequence[Pair]) -> Image.Image:
    """Small pictures in two rows each: before above, after below."""
    if not pairs:
        raise ValueError("contact_sheet: no pictures.")
    columns = min(COLUMNS, len(pairs))
    rows = -(-len(pairs) // columns)
    width, height = TILE + GAP, 2 * TILE + CAPTION + 2 * GAP
    sheet = Image.new("RGB", (columns * width + GAP, rows * height + GAP), PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(11)
    for number, pair in enumerate(pairs):
        x, y = GAP + number % columns * width, GAP + number // columns * height
        for row, picture in enumerate((pair.before, pair.after)):
            tile = _visible(picture)
            tile.thumbnail((TILE, TILE)) if max(tile.size) > TILE else None
            if max(tile.size) < TILE:
                factor = TILE / max(tile.size)
                tile = tile.resize((max(1, round(tile.width * factor)), max(1, round(tile.height * factor))))
            corner = (x + (TILE - tile.width) // 2, y + row * (TILE + GAP // 2) + (TILE - tile.height) // 2)
            sheet.paste(tile, corner)
        pen.text((x, y + 2 * TILE + GAP // 2 + 2), _shortened(pair.caption, pen, font), fill=INK, font=font)
    return sheet


def _visible(picture: Image.Image) -> Image.Image:
    """As RGB on black, in the way the network sees it."""
    if picture.mode.startswith("I"):
        return Image.fromarray((np.asarray(picture).clip(0, 65535) / 257).astype(np.uint8)).convert("RGB")
    if "A" in picture.getbands() or "transparency" in picture.info:
        above = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", above.size, (0, 0, 0, 255)), above).convert("RGB")
    return picture.convert("RGB")


def _shortened(text: str, pen: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    if pen.textlength(text, font) <= TILE:
        return text
    while text and pen.textlength(f"{text}…", font) > TILE:
        text = text[:-1]
    return f"{text}…"


def _arrow(pen: ImageDraw.ImageDraw, centre: tuple[float, float], length: float, degrees: float) -> None:
    """From the centre, counter-clockwise from the right; rows grow downwards."""
    angle = math.radians(degrees)
    x, y = math.cos(angle), -math.sin(angle)
    tip = (centre[0] + length * x, centre[1] + length * y)
    neck = (centre[0] + 0.8 * length * x, centre[1] + 0.8 * length * y)
    side = (-0.12 * length * y, 0.12 * length * x)
    width = max(2, round(length / 18))
    pen.line((centre, neck), fill=ARROW, width=width)
    pen.polygon((tip, (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])), fill=ARROW)
    pen.ellipse([(centre[0] - width, centre[1] - width), (centre[0] + width, centre[1] + width)], fill=ARROW)


def encoded(picture: Image.Image) -> bytes:
    """As the content of a file, without loss: PNG, or TIFF for what PNG cannot hold; see :func:`suffix`."""
    file = io.BytesIO()
    profile = picture.info.get("icc_profile")
    picture.save(file, format="PNG" if suffix(picture) == ".png" else "TIFF", icc_profile=profile)
    return file.getvalue()


SUFFIXES = (".png", ".tiff")


def suffix(picture: Image.Image) -> str:
    """Of the file that holds this picture without loss, one of :data:`SUFFIXES`."""
    return SUFFIXES[0] if picture.mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16") else SUFFIXES[1]
