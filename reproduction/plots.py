"""Pictures, drawn by matplotlib without a screen.

Images are drawn in plane coordinates, x right and y up around their centre, so that a pose is drawn as the arrow it is.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Dataset
from equicaps.errors import MissingPackageError
from reproduction.results import Record

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingPackageError("Pictures need matplotlib: pip install -e '.[train,figures]'.") from error

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"
"""From the palette of Okabe and Ito, which colour-blind readers can tell apart, too."""
BAD = 20.0
"""Degrees of error above which an arrow is drawn in orange."""
FAINT = 0.05
"""Fraction of the largest activation below which a capsule is not drawn."""
GALAXIES = 8
"""The number of sources of each class in the picture: the first ones of the test split, not selected."""

Field = tuple[Float[Tensor, "angles _h _w 2"], Float[Tensor, "angles _h _w"]]
"""Poses and activations of one capsule for every view."""


def output_poses(
    path: Path,
    views: Float[Tensor, "n angles size size"],
    poses: Float[Tensor, "n angles 2"],
    errors: Float[Tensor, "n angles"],
    angles: Sequence[float],
) -> None:
    """Draw Figure 4a: one row for each digit, one column for each angle."""
    rows, columns = views.shape[:2]
    figure = _figure(0.85 * columns + 0.5, 0.85 * rows + 0.55)
    for axes, row, column in _grid(figure, rows, columns):
        half = show_image(axes, views[row, column])
        show_pose(axes, poses[row, column], 0.8 * half, ORANGE if errors[row, column] > BAD else BLUE)
        if row == 0:
            axes.set_title(f"{angles[column]:.0f}°", fontsize=9)
    figure.supxlabel(
        f"pose of the digit's class; orange: more than {BAD:.0f}° off the pose expected from the first column",
        fontsize=8,
    )
    _save(figure, path)


def layer_poses(
    path: Path, views: Float[Tensor, "angles size size"], fields: Sequence[Field], angles: Sequence[float]
) -> None:
    """Draw Figure 4b: one row for each layer; the length of an arrow is the activation."""
    rows, columns = len(fields), len(views)
    figure = _figure(2.3 * columns + 0.3, 2.3 * rows + 0.3)
    for axes, row, column in _grid(figure, rows, columns):
        half = show_image(axes, 0.75 * views[column])
        show_field(axes, fields[row][0][column], fields[row][1][column], fields[row][1].amax().item() or 1.0, half)
        axes.set_xlim(-0.8 * half, 0.8 * half)
        axes.set_ylim(-0.8 * half, 0.8 * half)
        if row == 0:
            axes.set_title(f"{angles[column]:.0f}°", fontsize=10)
        if column == 0:
            axes.set_ylabel(f"after layer {row + 1}", fontsize=10)
    _save(figure, path)


def reconstructions(
    path: Path,
    originals: Float[Tensor, "n size size"],
    images: Float[Tensor, "n angles size size"],
    angles: Sequence[float],
) -> None:
    """Draw Figure 4c: the digit, and what the decoder makes of its rotated poses."""
    rows, columns = len(images), len(angles) + 1
    figure = _figure(0.75 * columns + 0.3, 0.75 * rows + 0.55)
    for axes, row, column in _grid(figure, rows, columns):
        show_image(axes, originals[row] if column == 0 else images[row, column - 1])
        if column == 0:
            axes.spines[:].set_color(BLUE)
            axes.spines[:].set_linewidth(2)
        if row == 0:
            axes.set_title("digit" if column == 0 else f"{angles[column - 1]:+.0f}°", fontsize=9)
    figure.supxlabel(
        "framed: the digit; then its reconstructions with all poses rotated by the given angle", fontsize=8
    )
    _save(figure, path)


def pose_error_by_class(path: Path, ours: Record | None, name: str, naive: Record | None = None) -> None:
    """Draw Figure 5: the errors of a network, if it was measured, and those of the naive poses as an outline."""
    bins = len((ours or naive or {"classes": [{"fractions": [0.0]}]})["classes"][0]["fractions"])
    edges = [180 * k / bins for k in range(bins + 1)]
    figure = _figure(9.5, 4.2)
    panels = figure.subplots(2, 5, sharex=True, sharey=True)
    for digit, axes in enumerate(panels.flat):
        if ours is not None:
            found = ours["classes"][digit]
            axes.stairs(found["fractions"], edges, fill=True, color=BLUE, label=name)
            axes.text(0.95, 0.82, f"mean {found['mean']:.1f}°", transform=axes.transAxes, ha="right", fontsize=8)
        if naive is not None:
            axes.stairs(naive["classes"][digit]["fractions"], edges, color=ORANGE, linewidth=1.3, label="naive")
        axes.set_title(f"digit {digit}", fontsize=9)
        axes.set_xticks([0, 60, 120, 180])
        axes.set_ylim(0, 1)
        axes.tick_params(labelsize=8)
    panels[0, 0].legend(fontsize=8, frameon=False, loc="center right")
    figure.supxlabel("pose error in degrees", fontsize=9)
    figure.supylabel("fraction of test digits", fontsize=9)
    _save(figure, path)


def accuracy_by_angle(path: Path, record: Record) -> None:
    """Draw the accuracy over the angle from ``exactness.json``, for networks trained on upright digits."""
    figure = _figure(7.0, 3.4)
    axes = figure.subplots()
    styles = {"whole": (BLUE, "o", "steerable"), "plain_cnn": (ORANGE, "s", "plain CNN")}
    for name, network in record["networks"].items():
        if network is not None:
            colour, marker, label = styles[name]
            curve = network["curve"]
            degrees, accuracy = [*curve["degrees"], 360], [*curve["accuracy"], curve["accuracy"][0]]
            axes.plot(degrees, accuracy, color=colour, marker=marker, markersize=4, label=label)
    axes.set_xticks(range(0, 361, 45))
    axes.set_xlim(0, 360)
    axes.set_ylim(0, 101)
    axes.set_xlabel("rotation of the test digits, degrees")
    axes.set_ylabel("accuracy, percent")
    axes.grid(color=GREY, alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.6))
    axes.set_title("trained on upright digits only", fontsize=10)
    _save(figure, path)


def galaxies(path: Path, record: Record, data: Dataset) -> None:
    """Draw the first test sources of each class: the pose as an arrow, the axis from the moments as a line."""
    found = next(run["axes"] for run in record["runs"] if "axes" in run)
    rows = len(data.classes)
    places = [(data.labels == row).nonzero().flatten().tolist()[:GALAXIES] for row in range(rows)]
    figure = _figure(GALAXIES + 0.3, rows + 0.5)
    for axes, row, column in _grid(figure, rows, GALAXIES):
        if column >= len(places[row]):
            axes.set_axis_off()
            continue
        place = places[row][column]
        half = show_image(axes, data.images[place, 0])
        axis, pose = found["axis"]["expected"][place], found["centroid"]["poses"][place]
        if axis is not None:
            x, y = (0.9 * half * _direction(axis)).tolist()
            axes.plot([-x, x], [-y, y], color=ORANGE, linewidth=1.0)
        if pose is not None:
            show_pose(axes, _direction(pose), 0.75 * half, BLUE)
        if column == 0:
            axes.set_ylabel(data.classes[row], fontsize=9)
        if (predicted := int(found["predicted"][place])) != row:
            axes.set_title(f"predicted {data.classes[predicted]}", fontsize=7, pad=2)
    figure.supxlabel(
        "blue: pose predicted by `steerable`; orange: axis from intensity moments, if elongated", fontsize=8
    )
    _save(figure, path)


def show_image(axes: Axes, image: Float[Tensor, "size size"]) -> float:
    """Draw nothing but the image, row 0 on top and its centre at the origin; returns half its side."""
    half = image.shape[-1] / 2
    axes.imshow(image.numpy(), cmap="gray", vmin=0, vmax=1, extent=(-half, half, -half, half), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    return half


def show_pose(axes: Axes, pose: Float[Tensor, " 2"], length: float, colour: str) -> None:
    """Draw an arrow from the centre; its direction is the pose, x right and y up."""
    x, y = (length * pose).tolist()
    axes.quiver(
        [0.0], [0.0], [x], [y], angles="xy", scale_units="xy", scale=1, color=colour, width=0.05, headwidth=3.2,
        headlength=3.6, headaxislength=3.4, edgecolor="white", linewidth=0.6, zorder=3,
    )  # fmt: skip


def show_field(
    axes: Axes,
    poses: Float[Tensor, "height width 2"],
    activations: Float[Tensor, "height width"],
    largest: float,
    half: float,
) -> None:
    """Draw an arrow at every place where the capsule is active, on an image of side 2 * half."""
    height, width = activations.shape
    y, x = torch.meshgrid(
        torch.tensor(grid_centres(height, half)[::-1]), torch.tensor(grid_centres(width, half)), indexing="ij"
    )
    present = activations > FAINT * largest
    arrows = (poses * (activations / largest).unsqueeze(-1))[present]
    axes.quiver(
        x[present].numpy(), y[present].numpy(), *arrows.T.numpy(), angles="xy", scale_units="xy", scale=0.28,
        color=ORANGE, width=0.009, headwidth=3.5, headlength=4, headaxislength=3.6, zorder=3,
    )  # fmt: skip


def grid_centres(count: int, half: float) -> list[float]:
    """The centres of ``count`` cells of equal width from -half to half."""
    return [(2 * index + 1) * half / count - half for index in range(count)]


def _direction(degrees: float) -> Float[Tensor, " 2"]:
    angle = torch.deg2rad(torch.tensor(degrees))
    return torch.stack((angle.cos(), angle.sin()))


def _figure(width: float, height: float) -> Figure:
    return Figure((width, height), dpi=110, layout="constrained")


def _grid(figure: Figure, rows: int, columns: int) -> Iterator[tuple[Axes, int, int]]:
    """One panel after the other, with its row and column."""
    for place in range(rows * columns):
        yield figure.add_subplot(rows, columns, place + 1), place // columns, place % columns


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": None})  # so that the same picture has the same bytes
