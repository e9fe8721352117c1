"""Surfaces in three dimensions, from which points are drawn; in the coordinates of their file, whatever is up there."""

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

LONGEST = 127
"""The longest side of a grid in voxels: places of faces are bytes, in units of half a voxel."""


@runtime_checkable
class Surface(Protocol):
    """What points can be drawn from."""

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 3"]:
        """``count`` points of the surface; zeros if it is empty."""

    def tobytes(self) -> bytes:
        """The content, for checksums: equal for equal surfaces."""


class VoxelSurface:
    """The faces of occupied voxels that no other occupied voxel touches; points are uniform on them.

    The surfaces of cavities belong to it. Voxel (i, j, k) is the cube from (i, j, k) to (i + 1, j + 1, k + 1), and the
    middle of the grid is the origin.

    Args:
        occupied: the grid, whose three axes are those of the points; at most :data:`LONGEST` voxels along each.
        unit: the length of a voxel's edge in the coordinates of the points.
    """

    def __init__(self, occupied: Bool[np.ndarray, "i j k"], unit: float = 1.0) -> None:
        if max(occupied.shape, default=0) > LONGEST:
            raise ValueError(
                f"VoxelSurface: `occupied` must have at most {LONGEST} voxels along each axis, but has shape "
                f"{occupied.shape}: reduce its resolution."
            )
        self.faces = torch.from_numpy(_exposed_faces(occupied))
        """The centre of each face from the corner of the grid, in half voxels, and the axis that it is normal to."""
        self.middle = torch.tensor(occupied.shape) / 2
        self.unit = unit

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 3"]:
        """Independent points: each face is as likely as any other, and so is each place on it."""
        if not len(self.faces):
            return torch.zeros(count, 3)
        chosen = self.faces[torch.randint(len(self.faces), (count,), generator=generator)]
        across = torch.rand(count, 3, generator=generator) - 0.5
        across.scatter_(1, chosen[:, 3:].long(), 0.0)
        return (chosen[:, :3] / 2 + across - self.middle) * self.unit

    def tobytes(self) -> bytes:
        """The faces, the size of the grid and the unit."""
        return self.faces.numpy().tobytes() + np.array([*self.middle.tolist(), self.unit]).tobytes()


class Mesh:
    """Triangles; points are uniform on their area.

    Args:
        triangles: the corners of each. Triangles without area are allowed, and no point is drawn from them; if none
            has an area, the surface counts as empty.
    """

    def __init__(self, triangles: Float[Tensor, "faces 3 3"]) -> None:
        self.triangles = triangles
        self._area_up_to = triangle_areas(triangles).cumsum(0)  # in double precision, for any number of triangles

    @property
    def area(self) -> float:
        """Of all triangles."""
        return float(self._area_up_to[-1]) if len(self.triangles) else 0.0

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 3"]:
        """Independent points: a triangle is drawn by its area, and a place on it uniformly."""
        if not self.area:
            return torch.zeros(count, 3)
        places = torch.rand(count, generator=generator, dtype=torch.float64) * self.area
        chosen = torch.searchsorted(self._area_up_to, places, right=True).clamp(max=len(self.triangles) - 1)
        first, second, third = self.triangles[chosen].unbind(1)
        far, along = torch.rand(count, 2, generator=generator, dtype=first.dtype).split(1, -1)
        far = far.sqrt()  # of the triangle's area, the part within `far` of the first corner is its square
        return ((1 - far) * first + far * (1 - along) * second + far * along * third).float()

    def tobytes(self) -> bytes:
        """The corners."""
        return self.triangles.numpy().tobytes()


class Cloud:
    """Points themselves, such as those of a scanner.

    Args:
        points: the points.
    """

    def __init__(self, points: Float[Tensor, "points 3"]) -> None:
        self.points = points

    def sample(self, count: int, generator: torch.Generator) -> Float[Tensor, "{count} 3"]:
        """Different points of the cloud, if it has enough of them; otherwise with repetition."""
        total = len(self.points)
        if not total:
            return torch.zeros(count, 3)
        if count <= total:
            chosen = torch.randperm(total, generator=generator)[:count]
        else:
            chosen = torch.randint(total, (count,), generator=generator)
        return self.points[chosen].float()

    def tobytes(self) -> bytes:
        """The points."""
        return self.points.numpy().tobytes()


def is_whole(surface: Surface, count: int) -> bool:
    """Whether ``count`` points are all that there is to draw: those of a cloud that has no more."""
    return isinstance(surface, Cloud) and len(surface.points) <= count


def drawn(surface: Surface, count: int, generator: torch.Generator) -> Float[Tensor, "_ 3"]:
    """``count`` points, or all of a cloud that has no more, each once: what networks are trained on and asked about."""
    if is_whole(surface, count):
        assert isinstance(surface, Cloud)
        return surface.points
    return surface.sample(count, generator)


def triangle_areas(triangles: Float[Tensor, "faces 3 3"]) -> Float[Tensor, " faces"]:
    """The area of each triangle, in double precision."""
    first, second, third = triangles.double().unbind(1)
    return torch.linalg.vector_norm(torch.linalg.cross(second - first, third - first), dim=-1) / 2


def _exposed_faces(occupied: Bool[np.ndarray, "i j k"]) -> UInt8[np.ndarray, "faces 4"]:
    """Centres in half voxels, then the axis; a face is where exactly one of two neighbours is occupied."""
    faces = []
    for axis in range(3):
        padding = [(1, 1) if other == axis else (0, 0) for other in range(3)]
        border = np.diff(np.pad(occupied, padding), axis=axis)
        found = 2 * np.argwhere(border) + 1
        found[:, axis] -= 1  # the border itself, where other coordinates are those of the middle of a voxel
        faces.append(np.column_stack((found, np.full(len(found), axis))).astype(np.uint8))
    return np.concatenate(faces)
