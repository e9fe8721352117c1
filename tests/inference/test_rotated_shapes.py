"""Shapes rotated upright are read back as the same shapes, rotated."""

import pytest
import torch
from small_shapes import SOLIDS

from equicaps.data import Cloud, Mesh, read_shape
from equicaps.groups import SO3
from equicaps.inference.rotated_shapes import upright_shape

TURN = SO3().random(generator=torch.Generator().manual_seed(0)).reshape(3, 3)
CHAIR = SOLIDS.surfaces[1]


def written(shape, rotation, folder):
    found = upright_shape(shape, rotation)
    (folder / f"shape{found.suffix}").write_bytes(found.content)
    return found.suffix, read_shape(folder / f"shape{found.suffix}", scale=False)


def test_a_mesh_is_rotated_back_about_its_centroid(tmp_path):
    """A solid of radius 1 has its centroid at the origin, so rotating R x back gives x; so does R x + t, moved by t."""
    moved = Mesh(CHAIR.triangles @ TURN.T + 2.0)
    suffix, found = written(moved, TURN, tmp_path)
    assert suffix == ".ply"
    torch.testing.assert_close(found.triangles.float(), CHAIR.triangles + 2.0, rtol=0, atol=1e-5)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(found.triangles.float(), moved.triangles, rtol=0, atol=1e-2)


def test_points_are_rotated_back_about_their_mean(tmp_path):
    points = CHAIR.sample(100, torch.Generator().manual_seed(0))
    points = points - points.mean(0)
    suffix, found = written(Cloud(points @ TURN.T + 2.0), TURN, tmp_path)
    assert suffix == ".xyz"
    torch.testing.assert_close(found.points.float(), points + 2.0, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [Mesh, Cloud])
def test_coordinates_of_a_map_are_kept(kind, tmp_path):
    """32 bits would round them to half a metre."""
    far = CHAIR.triangles.double() if kind is Mesh else CHAIR.triangles.double().flatten(0, 1)
    far = far + torch.tensor([450_000.0, 5_400_000.0, 100.0], dtype=torch.float64)
    _, found = written(kind(far), torch.eye(3), tmp_path)
    given = found.triangles if kind is Mesh else found.points
    torch.testing.assert_close(given, far, rtol=0, atol=1e-4)


def test_without_a_rotation_a_shape_stays_as_it_is(tmp_path):
    _, found = written(CHAIR, torch.full((3, 3), torch.nan), tmp_path)
    assert torch.equal(found.triangles, CHAIR.triangles.double())
