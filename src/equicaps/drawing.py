"""Pictures for people: images and shapes with their poses as arrows, before and after; audits. Needs Pillow."""

import importlib.util
import io
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from equicaps.errors import MissingPackageError
from equicaps.inference.audit import Certificate

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise MissingPackageError("Pictures need Pillow: pip install 'equicaps[data]'.") from error

ARROW, PAPER, INK = (230, 60, 40), (255, 255, 255), (30, 30, 30)
WEDGE = 96
"""The opacity of the wedge that shows the error of an angle, of 255."""
TILE, CAPTION, GAP = 96, 16, 8
COLUMNS = 6
SMALLEST = 256
"""The side to which small pictures are enlarged before an arrow is drawn on them."""
AXES = ((214, 50, 40), (40, 150, 60), (40, 90, 210))
"""The colours of the first, second and third axis of a frame."""
NEAR, FAR = 60, 205
"""The grey of the nearest and of the farthest point of a cloud."""
EYE = (25.0, 30.0)
"""From where shapes are seen, whose third axis points up: so many degrees from the side, and above."""


class Pair(NamedTuple):
    """A picture before and after it was rotated upright, with a caption."""

    before: Image.Image
    after: Image.Image
    caption: str


def draw_pose(
    picture: Image.Image, degrees: float | None, caption: str, *, error: float | None = None, period: float = 360.0
) -> Image.Image:
    """Draw an arrow on a picture towards the top of what it shows, and a caption below; small pictures are enlarged.

    At 0 degrees the arrow points up, at 90 degrees (a quarter turn counter-clockwise) to the left. Without a pose there
    is no arrow. With ``error``, a wedge shows how far off the arrow may be. What looks the same after ``period``
    degrees has an arrow for each of these positions.
    """
    shown = _visible(picture)
    factor = max(1, math.ceil(SMALLEST / max(shown.size)))
    shown = shown.resize((shown.width * factor, shown.height * factor), Image.Resampling.NEAREST)
    size = max(14, min(shown.size) // 16)
    sheet = Image.new("RGB", (shown.width, shown.height + 2 * size), PAPER)
    centre, length = (shown.width / 2, shown.height / 2), 0.42 * min(shown.size)
    towards = [] if degrees is None else [degrees + k * period for k in range(round(360 / (period or 360)))]
    if error:
        shown = _with_wedges(shown, centre, length, towards, error)
    sheet.paste(shown, (0, 0))
    pen = ImageDraw.Draw(sheet)
    for angle in towards:
        _arrow(pen, centre, length, angle + 90)
    pen.text((size // 2, shown.height + size // 3), caption, fill=INK, font=ImageFont.load_default(size))
    return sheet


def draw_shape(
    points: Float[np.ndarray, "n 3"], rotation: Sequence[Sequence[float]] | None, caption: str, *, side: int = 384
) -> Image.Image:
    """Draw a cloud of points, near ones darker, and its frame as three arrows from the centroid; a caption below.

    The third coordinate points up. The arrows, red, green and blue, are the columns of the rotation: where the three
    axes of the upright shape have gone. Without a pose there are none.
    """
    around = points - points.mean(0)
    view = around @ _camera().T
    radius = float(np.linalg.norm(around, axis=1).max()) or 1.0
    factor, dot = 0.46 * side / radius, max(1.0, side / 160)
    size = max(14, side // 20) if caption else 0
    sheet = Image.new("RGB", (side, side + 2 * size), PAPER)
    pen = ImageDraw.Draw(sheet)
    for x, y, depth in view[view[:, 2].argsort()]:  # the farthest first
        grey = round(FAR + (NEAR - FAR) * (depth / radius + 1) / 2)
        column, row = side / 2 + factor * x, side / 2 - factor * y
        pen.ellipse([(column - dot, row - dot), (column + dot, row + dot)], fill=(grey, grey, grey))
    if rotation is not None:
        axes = _camera() @ np.asarray(rotation, dtype=float)
        for axis in axes[2].argsort():
            x, y, _ = axes[:, axis]
            length = 0.4 * side * math.hypot(x, y)
            _arrow(pen, (side / 2, side / 2), length, math.degrees(math.atan2(y, x)), AXES[axis])
    if caption:
        room = side - size
        fitting = min(size, size * room / pen.textlength(caption, ImageFont.load_default(size)))
        pen.text((size // 2, side + size // 3), caption, fill=INK, font=ImageFont.load_default(fitting))
    return sheet


def _camera() -> Float[np.ndarray, "3 3"]:
    """The rotation from the axes of a shape to those of its picture: right, up, and towards the eye."""
    turn, above = map(math.radians, EYE)
    right = (math.cos(turn), math.sin(turn), 0.0)
    eye = (math.cos(above) * math.sin(turn), -math.cos(above) * math.cos(turn), math.sin(above))
    return np.stack((right, np.cross(eye, right), eye))


def contact_sheet(pairs: Sequence[Pair]) -> Image.Image:
    """A sheet of small pictures in columns, each before (above) and after (below)."""
    if not pairs:
        raise ValueError("contact_sheet: there are no pictures; pass at least one pair.")
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
    """The picture in RGB, laid on black or white where it is transparent, as the network sees it."""
    if picture.mode.startswith("I"):
        return Image.fromarray((np.asarray(picture).clip(0, 65535) / 257).astype(np.uint8)).convert("RGB")
    if "A" in picture.getbands() or "transparency" in picture.info:
        from equicaps.images.decode import pixels

        seen = pixels(picture).expand(3, -1, -1).permute(1, 2, 0)
        return Image.fromarray(seen.contiguous().numpy())
    return picture.convert("RGB")


def _shortened(text: str, pen: ImageDraw.ImageDraw, font: ImageFont.FreeTypeFont | ImageFont.ImageFont) -> str:
    if pen.textlength(text, font) <= TILE:
        return text
    while text and pen.textlength(f"{text}…", font) > TILE:
        text = text[:-1]
    return f"{text}…"


def _with_wedges(
    shown: Image.Image, centre: tuple[float, float], length: float, towards: Sequence[float], error: float
) -> Image.Image:
    """Colour the sectors within ``error`` degrees of some angles, so that the picture shines through."""
    x, y = centre
    mask = Image.new("L", shown.size)
    box = [(x - length, y - length), (x + length, y + length)]
    for degrees in towards:  # Pillow's angles are clockwise from the right
        ImageDraw.Draw(mask).pieslice(box, -90 - degrees - error, -90 - degrees + error, fill=WEDGE)
    return Image.composite(Image.new("RGB", shown.size, ARROW), shown, mask)


def _arrow(
    pen: ImageDraw.ImageDraw,
    centre: tuple[float, float],
    length: float,
    degrees: float,
    colour: tuple[int, int, int] = ARROW,
) -> None:
    """Draw an arrow from a point in a direction, given counter-clockwise from the right."""
    angle = math.radians(degrees)
    x, y = math.cos(angle), -math.sin(angle)  # rows grow downwards
    tip = (centre[0] + length * x, centre[1] + length * y)
    neck = (centre[0] + 0.8 * length * x, centre[1] + 0.8 * length * y)
    side = (-0.12 * length * y, 0.12 * length * x)
    width = max(2, round(length / 18))
    pen.line((centre, neck), fill=colour, width=width)
    pen.polygon((tip, (neck[0] + side[0], neck[1] + side[1]), (neck[0] - side[0], neck[1] - side[1])), fill=colour)
    pen.ellipse([(centre[0] - width, centre[1] - width), (centre[0] + width, centre[1] + width)], fill=colour)


def require_plots() -> None:
    """Raise an error that says what to install unless :func:`plot_certificate` can draw."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingPackageError("Plots need matplotlib: pip install 'equicaps[figures]'.")


def plot_certificate(certificate: Certificate) -> bytes:
    """Plot accuracy, pose error and the equivariance of the layers against the angle, as a PNG."""
    require_plots()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    accuracy, pose, layer = figure.subplots(1, 3)
    degrees = [entry.degrees for entry in certificate.angles]
    accuracy.plot(degrees, [entry.accuracy for entry in certificate.angles], label="scores")
    accuracy.plot(degrees, [entry.agreement_accuracy for entry in certificate.angles], label="agreements")
    accuracy.set(title="accuracy, %", xlabel="rotation, degrees")
    pose.plot(degrees, [entry.pose_error_mean for entry in certificate.angles], label="mean")
    pose.plot(degrees, [entry.pose_error_median for entry in certificate.angles], label="median")
    pose.set(title="pose error, degrees", xlabel="rotation, degrees", ylim=(0, None))
    for number in sorted({entry.layer for entry in certificate.layers}):
        rows = [entry for entry in certificate.layers if entry.layer == number]
        layer.plot([row.degrees for row in rows], [row.equivariance for row in rows], marker="o", label=f"{number}")
    layer.set(title="layers: pose equivariance error", xlabel="rotation, degrees", ylim=(0, None))
    for axes in (accuracy, pose):
        axes.set_xticks(range(0, 361, 90))
    for axes in (accuracy, pose, layer):
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    verdict = "exact under quarter turns" if certificate.holds else "NOT exact under quarter turns"
    figure.suptitle(f"{certificate.model} on {certificate.images:,} images of {certificate.data}: {verdict}")
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return file.getvalue()
