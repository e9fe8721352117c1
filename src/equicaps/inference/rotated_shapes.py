"""Shapes rotated upright, as the content of files: PLY for a mesh, XYZ for points."""

import io
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.surfaces import Cloud, Mesh, triangle_areas
from equicaps.inference.point_model import rotate_back

SUFFIXES = (".ply", ".xyz")


class ShapeFile(NamedTuple):
    """A file that is not written yet."""

    suffix: str
    content: bytes


def upright_shape(shape: Mesh | Cloud, rotation: Float[Tensor, "3 3"]) -> ShapeFile:
    """The shape, rotated back about its centroid; unchanged if the rotation is NaN."""
    if isinstance(shape, Cloud):
        return ShapeFile(".xyz", _xyz(rotate_back(shape.points, rotation)))
    return ShapeFile(".ply", _ply(rotate_back(shape.triangles, rotation, _centroid(shape.triangles))))


def _centroid(triangles: Float[Tensor, "faces 3 3"]) -> Float[Tensor, "3"]:
    """That of the area; the mean of the corners of what has none."""
    middles, areas = triangles.double().mean(1), triangle_areas(triangles)
    total = areas.sum()
    return areas @ middles / total if total > 0 else middles.mean(0)


def _xyz(points: Float[Tensor, "n 3"]) -> bytes:
    file = io.BytesIO()
    np.savetxt(file, points.numpy(), fmt="%.12g")
    return file.getvalue()


def _ply(triangles: Float[Tensor, "faces 3 3"]) -> bytes:
    """Binary, with three corners for each face."""
    count = len(triangles)
    header = (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {3 * count}\n"
        "property double x\nproperty double y\nproperty double z\n"
        f"element face {count}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    faces = np.empty(count, dtype=[("corners", "u1"), ("indices", "<i4", 3)])
    faces["corners"] = 3
    faces["indices"] = torch.arange(3 * count).reshape(count, 3).numpy()
    return header.encode() + triangles.numpy().astype("<f8").tobytes() + faces.tobytes()
