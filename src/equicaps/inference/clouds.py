"""Clouds of points, as people have them, in the form that a network takes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from equicaps.data.centring import centred
from equicaps.data.shape_files import read_shape
from equicaps.data.shapes import Surfaces
from equicaps.data.surfaces import Surface, drawn
from equicaps.inference.point_card import MOST_POINTS

OneCloud = Tensor | NDArray[np.generic] | Surface | Path | str
"""Points of shape (n, 3), a surface, or the path of a file."""
Clouds = OneCloud | Surfaces | Sequence[OneCloud]
"""One or several; a tensor or an array of shape (batch, n, 3) holds several."""


def read_clouds(clouds: Clouds, points: int) -> list[Float[Tensor, "_ 3"]]:
    """The points of each cloud, in its own coordinates, or around the origin with radius 1 if it comes from a file.

    Points are taken as they are; of more than :data:`MOST_POINTS` of them, so many are chosen. ``points`` are drawn
    from a surface, and from a file with more points than that. All draws are seeded, separately for each cloud: the
    same file gives the same points, whatever it is read with.

    Args:
        clouds: one cloud or several, each a tensor or an array, a surface, or a path.
        points: how many to draw from a surface.
    """
    return [_checked(cloud, number) for number, cloud in enumerate(_each(clouds, points), 1)]


def prepared(cloud: Float[Tensor, "n 3"]) -> Float[Tensor, "n 3"]:
    """A cloud around the origin with radius 1, as in training; in double precision, wherever and however large."""
    return centred(cloud.double())


def _each(clouds: Clouds, points: int) -> list[Tensor]:
    if isinstance(clouds, Tensor | np.ndarray):
        given = torch.as_tensor(clouds).detach().cpu()
        if given.ndim not in (2, 3) or given.shape[-1] != 3:
            raise ValueError(
                f"clouds must have shape (n, 3), or (batch, n, 3) for several, but have shape {tuple(given.shape)}."
            )
        return [given] if given.ndim == 2 else list(given)
    if isinstance(clouds, str | Path):
        clouds = read_shape(clouds)
    if isinstance(clouds, Surfaces):
        return [_drawn(surface, points) for surface in clouds]
    if isinstance(clouds, Surface):
        return [_drawn(clouds, points)]
    if not isinstance(clouds, Sequence):
        raise TypeError(
            "clouds must be points (a tensor or an array), the path of a shape, a surface, or several of these, but "
            f"are of type {type(clouds).__name__}."
        )
    found = []
    for cloud in clouds:
        if isinstance(cloud, Tensor | np.ndarray) and cloud.ndim != 2:
            raise ValueError(f"each cloud of a list must have shape (n, 3), but one has shape {tuple(cloud.shape)}.")
        found += _each(cloud, points)
    return found


def _drawn(surface: Surface, points: int) -> Tensor:
    return drawn(surface, points, torch.Generator().manual_seed(0))


def _checked(cloud: Tensor, number: int) -> Float[Tensor, "n 3"]:
    if cloud.ndim != 2 or cloud.shape[-1] != 3 or cloud.is_complex() or cloud.dtype == torch.bool:
        raise ValueError(
            f"a cloud must have shape (n, 3) and real numbers, but cloud {number} has shape {tuple(cloud.shape)} and "
            f"type {cloud.dtype}."
        )
    if not len(cloud):
        raise ValueError(f"cloud {number} has no points; at least one is needed.")
    if not cloud.isfinite().all():
        raise ValueError(f"cloud {number} has coordinates that are NaN or infinite; remove those points.")
    if len(cloud) > MOST_POINTS:
        cloud = cloud[torch.randperm(len(cloud), generator=torch.Generator().manual_seed(0))[:MOST_POINTS]]
    return cloud if cloud.dtype in (torch.float32, torch.float64) else cloud.double()
