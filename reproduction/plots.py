"""Pictures, with matplotlib (``pip install 'equicaps[figures]'``) and without a screen.

Images are drawn in plane coordinates, x right and y up around their centre: a pose is drawn as the arrow that it is.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from reproduction.session import Record

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError as error:
    raise ImportError("Pictures need matplotlib: pip install 'equicaps[figures]'.") from error

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"
"""Of Okabe and Ito: distinct to colour-blind eyes, too."""
DOTS_PER_INCH = 110
BAD = 20.0
"""Degrees from which an arrow is drawn as an error."""
FAINT = 0.05
"""Share of the largest activation below which a capsule is not drawn."""

Field = tuple[Float[Tensor, "angles height width 2"], Float[Tensor, "angles height width"]]
"""Poses and activations of one capsule for every view."""


def show_image(axes: Axes, image: Float[Tensor, "size size"]) -> float:
    """Row 0 on top, centre at the origin, nothing but the image; returns half its side."""
    half = image.shape[-1] / 2
    axes.imshow(image.numpy(), cmap="gray", vmin=0, vmax=1, extent=(-half, half, -half, half), interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    return half


def show_pose(axes: Axes, pose: Float[Tensor, " 2"], length: float, colour: str) -> None:
    """An arrow from the centre; its direction is the pose, x right and y up."""
    x, y = (length * pose).tolist()
    axes.quiver(
        [0.0], [0.0], [x], [y], angles="xy", scale_units="xy", scale=1, color=colour, width=0.05, headwidth=3.2,
        headlength=3.6, headaxislength=3.4, edgecolor="white", linewidth=0.6, zorder=3,
    )  # fmt: skip


def grid_centres(count: int, half: float) -> list[float]:
    """The middles of so many cells from -half to half."""
    return [(2 * index + 1) * half / count - half for index in range(count)]


def output_poses(
    path: Path,
    views: Float[Tensor, "n angles size size"],
    poses: Float[Tensor, "n angles 2"],
    errors: Float[Tensor, "n angles"],
    angles: Sequence[float],
) -> None:
    """Figure 4a: one row for each digit, one column for each angle."""
    rows, columns = views.shape[:2]
    figure = Figure((0.85 * columns + 0.5, 0.85 * rows + 0.55), dpi=DOTS_PER_INCH, layout="constrained")
    for row in range(rows):
        for column in range(columns):
            axes = figure.add_subplot(rows, columns, row * columns + column + 1)
            half = show_image(axes, views[row, column])
            show_pose(axes, poses[row, column], 0.8 * half, ORANGE if errors[row, column] > BAD else BLUE)
            if row == 0:
                axes.set_title(f"{angles[column]:.0f}°", fontsize=9)
    figure.supxlabel(f"pose of the digit's class; orange: more than {BAD:.0f}° off the first column's", fontsize=8)
    _save(figure, path)


def layer_poses(
    path: Path, views: Float[Tensor, "angles size size"], fields: Sequence[Field], angles: Sequence[float]
) -> None:
    """Figure 4b: one row for each layer; the length of an arrow is the activation."""
    rows, columns = len(fields), len(views)
    figure = Figure((2.3 * columns + 0.3, 2.3 * rows + 0.3), dpi=DOTS_PER_INCH, layout="constrained")
    for row, (poses, activations) in enumerate(fields):
        largest = activations.amax().item() or 1.0
        for column in range(columns):
            axes = figure.add_subplot(rows, columns, row * columns + column + 1)
            half = show_image(axes, 0.75 * views[column])
            height, width = activations.shape[1:]
            y, x = torch.meshgrid(
                torch.tensor(grid_centres(height, half)[::-1]), torch.tensor(grid_centres(width, half)), indexing="ij"
            )
            present = activations[column] > FAINT * largest
            arrows = (poses[column] * (activations[column] / largest).unsqueeze(-1))[present]
            axes.quiver(
                x[present].numpy(), y[present].numpy(), *arrows.T.numpy(), angles="xy", scale_units="xy", scale=0.28,
                color=ORANGE, width=0.009, headwidth=3.5, headlength=4, headaxislength=3.6, zorder=3,
            )  # fmt: skip
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
    """Figure 4c: the digit, and what the decoder makes of its turned poses."""
    rows, columns = len(images), len(angles) + 1
    figure = Figure((0.75 * columns + 0.3, 0.75 * rows + 0.55), dpi=DOTS_PER_INCH, layout="constrained")
    for row in range(rows):
        for column in range(columns):
            axes = figure.add_subplot(rows, columns, row * columns + column + 1)
            show_image(axes, originals[row] if column == 0 else images[row, column - 1])
            if column == 0:
                axes.spines[:].set_color(BLUE)
                axes.spines[:].set_linewidth(2)
            if row == 0:
                axes.set_title("digit" if column == 0 else f"{angles[column - 1]:+.0f}°", fontsize=9)
    figure.supxlabel("framed: the digit; then its reconstructions with every pose turned by so much", fontsize=8)
    _save(figure, path)


def pose_error_by_class(path: Path, record: Record) -> None:
    """Figure 5, from ``table1b.json``; with ours where it was measured, the naive poses as an outline."""
    ours, naive = record["rows"]["consistency"], record["rows"]["naive"]
    edges = list(range(0, 181, record["bin_degrees"]))
    figure = Figure((9.5, 4.2), dpi=DOTS_PER_INCH, layout="constrained")
    panels = figure.subplots(2, 5, sharex=True, sharey=True)
    for digit, axes in enumerate(panels.flat):
        if ours is not None:
            found = ours["classes"][digit]
            axes.stairs(found["fractions"], edges, fill=True, color=BLUE, label="steerable")
            axes.text(0.95, 0.82, f"mean {found['mean']:.1f}°", transform=axes.transAxes, ha="right", fontsize=8)
        axes.stairs(naive["classes"][digit]["fractions"], edges, color=ORANGE, linewidth=1.3, label="naive")
        axes.set_title(f"digit {digit}", fontsize=9)
        axes.set_xticks([0, 60, 120, 180])
        axes.set_ylim(0, 1)
        axes.tick_params(labelsize=8)
    panels[0, 0].legend(fontsize=8, frameon=False, loc="center right")
    figure.supxlabel("pose error in degrees", fontsize=9)
    figure.supylabel("share of test digits", fontsize=9)
    _save(figure, path)


def accuracy_by_angle(path: Path, record: Record) -> None:
    """From ``exactness.json``: networks that were trained on upright digits."""
    figure = Figure((7, 3.4), dpi=DOTS_PER_INCH, layout="constrained")
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
    axes.set_xlabel("test digits turned by, degrees")
    axes.set_ylabel("accuracy, percent")
    axes.grid(color=GREY, alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.5, 0.6))
    axes.set_title("trained on upright digits only", fontsize=10)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", metadata={"Software": None})  # the same picture, the same bytes
