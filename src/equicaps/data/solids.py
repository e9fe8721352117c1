"""Solid shapes with random proportions, for tests and demonstrations: no file is needed."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.centring import centred
from equicaps.data.shapes import Shapes, Surfaces
from equicaps.data.surfaces import Mesh

SIDES = 24
"""Of the prisms that stand for cylinders."""

Triangles = Float[Tensor, "faces 3 3"]
Number = float | int
Corner = tuple[Number, Number, Number]
Draw = Callable[[float, float], float]
"""A uniform number between two others."""


def solid_shapes(count: int, seed: int = 0) -> Shapes:
    """Blocks, chairs, cups, rockets and staircases in turns, upright along the third axis, with radius 1.

    No rotation maps one of them onto itself. Cups and rockets are equal to their mirror images; the others are not.

    Args:
        count: the number of shapes.
        seed: of their proportions; the first shapes of a larger set are the same.
    """
    generator = torch.Generator().manual_seed(seed)

    def draw(low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), generator=generator, dtype=torch.float64))

    makers = list(SOLIDS.values())
    labels = torch.arange(count) % len(makers)
    surfaces = Surfaces(Mesh(centred(makers[label](draw)).float()) for label in labels.tolist())
    return Shapes(f"solids (regenerated, seed {seed})", surfaces, labels, tuple(SOLIDS))


def _block(draw: Draw) -> Triangles:
    """An L with a knob on one side."""
    length, height, depth = draw(0.9, 1.3), draw(1.6, 2.2), draw(0.3, 0.5)
    thick = draw(0.3, 0.45)
    knob = draw(0.2, 0.3)
    return torch.cat(
        (
            _box((0, 0, 0), (length, depth, thick)),
            _box((0, 0, thick), (thick, depth, height)),
            _box((0, depth, height - knob), (thick, depth + draw(0.3, 0.5), height)),
        )
    )


def _chair(draw: Draw) -> Triangles:
    """Four legs, a seat, a back and one arm."""
    width, depth, seat, back = draw(0.9, 1.1), draw(0.8, 1.0), draw(0.7, 0.9), draw(0.7, 1.1)
    thick, leg = draw(0.08, 0.14), draw(0.08, 0.12)
    legs = [_box((x, y, 0), (x + leg, y + leg, seat)) for x in (0, width - leg) for y in (0, depth - leg)]
    return torch.cat(
        (
            *legs,
            _box((0, 0, seat), (width, depth, seat + thick)),
            _box((0, depth - thick, seat + thick), (width, depth, seat + thick + back)),
            _box((0, 0, seat + back / 3), (leg, depth - thick, seat + back / 3 + leg)),
        )
    )


def _cup(draw: Draw) -> Triangles:
    """An open vessel with a handle."""
    radius, height, wall = draw(0.45, 0.6), draw(0.9, 1.3), draw(0.05, 0.08)
    base, thick, reach = draw(0.75, 1.0) * radius, draw(0.08, 0.12), draw(0.3, 0.45)
    low, high, out = 0.25 * height, 0.8 * height, radius + reach
    return torch.cat(
        (
            _frustum(base, radius, 0, height),
            _frustum(base - wall, radius - wall, wall, height),
            _disc(base, 0),
            _disc(base - wall, wall),
            _box((radius - wall, -thick / 2, high - thick), (out, thick / 2, high)),
            _box((base - wall, -thick / 2, low), (out, thick / 2, low + thick)),
            _box((out - thick, -thick / 2, low), (out, thick / 2, high)),
        )
    )


def _rocket(draw: Draw) -> Triangles:
    """A cylinder with a tip and one fin."""
    radius, height, tip = draw(0.2, 0.3), draw(1.4, 1.8), draw(0.5, 0.8)
    fin, thick = draw(0.35, 0.5), draw(0.05, 0.08)
    return torch.cat(
        (
            _frustum(radius, radius, 0, height),
            _frustum(radius, 0, height, height + tip),
            _disc(radius, 0),
            _box((radius, -thick / 2, 0), (radius + fin, thick / 2, draw(0.4, 0.6))),
        )
    )


def _staircase(draw: Draw) -> Triangles:
    """Steps with a wall on one side."""
    steps, width = int(draw(3.0, 6.0)), draw(0.7, 1.0)
    run, rise = draw(0.3, 0.4), draw(0.2, 0.3)
    wall, high = draw(0.06, 0.12), draw(0.3, 0.5)
    stairs = [_box((k * run, 0, 0), ((k + 1) * run, width, (k + 1) * rise)) for k in range(steps)]
    return torch.cat((*stairs, _box((0, width, 0), (steps * run, width + wall, steps * rise + high))))


SOLIDS: dict[str, Callable[[Draw], Triangles]] = {
    "block": _block,
    "chair": _chair,
    "cup": _cup,
    "rocket": _rocket,
    "staircase": _staircase,
}


def _box(low: Corner, high: Corner) -> Triangles:
    """The six sides of a box between two corners."""
    ends = torch.tensor((low, high), dtype=torch.float64)
    corners = torch.cartesian_prod(*ends.T)  # corner 4 i + 2 j + k has the ends i, j, k
    quads = torch.tensor(((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)))
    return corners[torch.cat((quads[:, :3], quads[:, [2, 3, 0]]))]


def _ring(radius: Number, height: Number) -> Float[Tensor, "sides 3"]:
    turn = torch.arange(SIDES, dtype=torch.float64) * (2 * math.pi / SIDES)
    return torch.stack((radius * turn.cos(), radius * turn.sin(), torch.full_like(turn, height)), -1)


def _frustum(below: Number, above: Number, low: Number, high: Number) -> Triangles:
    """The side of a truncated cone around the third axis, with the radii below and above."""
    a, d = _ring(below, low), _ring(above, high)
    b, c = a.roll(-1, 0), d.roll(-1, 0)
    return torch.cat((torch.stack((a, b, c), 1), torch.stack((a, c, d), 1)))


def _disc(radius: Number, height: Number) -> Triangles:
    """A regular polygon around the third axis."""
    rim = _ring(radius, height)
    return torch.stack((_ring(0, height), rim, rim.roll(-1, 0)), 1)
