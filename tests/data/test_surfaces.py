import math

import numpy as np
import pytest
import torch

from equicaps.data import Cloud, Mesh, Surface, VoxelSurface
from equicaps.data.surfaces import LONGEST, drawn, is_whole, triangle_areas


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def sheet(*sides):
    """Right triangles with legs of these lengths, each in a plane of its own, at height 0, 1, 2, ..."""
    return torch.tensor([[[0.0, 0.0, z], [side, 0.0, z], [0.0, side, z]] for z, side in enumerate(sides)])


def bar():
    """A bar of three voxels in a grid of 5 x 4 x 3: fourteen faces."""
    grid = np.zeros((5, 4, 3), bool)
    grid[1:4, 2, 1] = True
    return grid


SURFACES = {
    "voxels": VoxelSurface(bar()),
    "mesh": Mesh(sheet(1.0, 2.0)),
    "cloud": Cloud(torch.rand(500, 3, generator=seeded())),
}
EMPTY = {
    "voxels": VoxelSurface(np.zeros((3, 3, 3), bool)),
    "mesh": Mesh(torch.zeros(0, 3, 3)),
    "flat mesh": Mesh(torch.ones(2, 3, 3)),
    "cloud": Cloud(torch.zeros(0, 3)),
}


@pytest.mark.parametrize("surface", SURFACES.values(), ids=SURFACES)
def test_points_depend_on_the_generator_alone(surface):
    assert isinstance(surface, Surface)
    points = surface.sample(100, seeded())
    assert points.shape == (100, 3)
    assert points.dtype == torch.float32
    assert torch.equal(points, surface.sample(100, seeded()))
    assert not torch.equal(points, surface.sample(100, seeded(1)))
    assert surface.sample(0, seeded()).shape == (0, 3)


@pytest.mark.parametrize("surface", EMPTY.values(), ids=EMPTY)
def test_an_empty_surface_gives_zeros(surface):
    assert torch.equal(surface.sample(7, seeded()), torch.zeros(7, 3))


def test_bytes_tell_surfaces_apart():
    others = [
        VoxelSurface(bar(), 0.5),
        VoxelSurface(np.roll(bar(), 1, axis=0)),
        VoxelSurface(np.pad(bar(), ((0, 1), (0, 0), (0, 0)))),
    ]
    contents = [surface.tobytes() for surface in (*SURFACES.values(), *others, Mesh(sheet(1.0, 3.0)))]
    assert len(set(contents)) == len(contents)
    assert VoxelSurface(bar()).tobytes() == SURFACES["voxels"].tobytes()


def on_the_bar(points, tolerance=1e-6):
    """Whether points lie on the surface of the box from (1, 2, 1) to (4, 3, 2), seen from the middle of the grid."""
    low, high = torch.tensor([1.0, 2, 1]), torch.tensor([4.0, 3, 2])
    places = points + torch.tensor([2.5, 2, 1.5])
    distances = torch.minimum(places - low, high - places)  # to the nearer of two opposite sides, positive inside
    return (distances.amin(1).abs() < tolerance) & (distances > -tolerance).all(1)


def test_points_of_voxels_lie_on_exposed_faces():
    assert len(SURFACES["voxels"].faces) == 14  # the two between voxels are none
    assert SURFACES["voxels"].faces.dtype == torch.uint8
    points = SURFACES["voxels"].sample(2000, seeded())
    assert on_the_bar(points).all()
    half = VoxelSurface(bar(), unit=0.5).sample(2000, seeded())
    torch.testing.assert_close(half, points / 2)


def test_that_check_rejects_points_inside_and_beside():
    """Control: centres of voxels are inside, and points of a shifted grid beside."""
    assert not on_the_bar(torch.tensor([[0.0, 0.5, 0.0]])).any()
    assert not on_the_bar(SURFACES["voxels"].sample(2000, seeded()) + torch.tensor([0.1, 0.1, 0.1])).all()


def test_every_face_is_exposed_to_one_side():
    """Against a plain loop over a random grid, cavities included."""
    grid = np.random.default_rng(0).random((5, 6, 7)) < 0.6
    expected = set()
    for place in np.argwhere(grid):
        for axis in range(3):
            for step in (-1, 1):
                beside = place.copy()
                beside[axis] += step
                inside = 0 <= beside[axis] < grid.shape[axis]
                if not (inside and grid[tuple(beside)]):
                    centre = 2 * place + 1
                    centre[axis] += step
                    expected.add((*centre.tolist(), axis))
    found = [tuple(face) for face in VoxelSurface(grid).faces.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == expected


def chi_square(counts, shares):
    expected = torch.tensor(shares, dtype=torch.float64) / sum(shares) * counts.sum()
    return float(((counts - expected).square() / expected).sum())


LIMIT = 27.9
"""Of chi-square with nine degrees of freedom: exceeded once in a thousand times."""


def test_points_of_a_mesh_are_drawn_by_area():
    """Ten triangles whose areas are 1, 4, 9, ..."""
    sides = [float(side) for side in range(1, 11)]
    heights = Mesh(sheet(*sides)).sample(20_000, seeded())[:, 2]
    counts = heights.round().long().bincount(minlength=10)
    assert chi_square(counts, [side**2 for side in sides]) < LIMIT
    assert chi_square(counts, [1.0] * 10) > 10 * LIMIT  # control: not one as likely as another
    assert chi_square(counts, sides) > 10 * LIMIT  # control: nor by length


def test_points_of_a_triangle_are_uniform_on_it():
    """The nearest of ten strips of equal area, seen from each corner: {x + y < r} has the area r²."""
    points = Mesh(sheet(1.0)).sample(20_000, seeded())
    assert points[:, 2].abs().max() == 0
    assert points.min() >= 0
    assert points.sum(1).max() <= 1 + 1e-6
    for distance in (points[:, 0] + points[:, 1], 1 - points[:, 0], 1 - points[:, 1]):
        strips = (distance.square() * 10).long().clamp(max=9).bincount(minlength=10)
        assert chi_square(strips, [1.0] * 10) < LIMIT
        naive = (distance * 10).long().clamp(max=9).bincount(minlength=10)
        assert chi_square(naive, [1.0] * 10) > 10 * LIMIT  # control


def test_faces_of_voxels_are_equally_likely():
    """Of the bar's area, 2/14 is at its ends, and the rest on its long sides."""
    points = SURFACES["voxels"].sample(14_000, seeded())
    ends = int((points[:, 0].abs() > 1.5 - 1e-6).sum())
    assert abs(ends - 2000) < 4 * math.sqrt(14_000 * 1 / 7 * 6 / 7)
    assert abs(ends - 14_000 / 3) > 1000  # control: not one axis as likely as another


def test_triangles_without_area_give_no_points():
    triangles = torch.cat((torch.zeros(3, 3, 3) - 5, sheet(1.0), torch.zeros(3, 3, 3) - 5))
    assert Mesh(triangles).sample(1000, seeded()).min() >= 0


def test_areas_are_those_of_heron():
    triangles = torch.randn(50, 3, 3, generator=seeded())
    a, b, c = (torch.linalg.vector_norm(triangles[:, i] - triangles[:, i - 1], dim=-1).double() for i in range(3))
    s = (a + b + c) / 2
    torch.testing.assert_close(
        triangle_areas(triangles), (s * (s - a) * (s - b) * (s - c)).sqrt(), rtol=1e-4, atol=1e-5
    )
    assert Mesh(triangles).area == pytest.approx(float(triangle_areas(triangles).sum()))


def test_a_cloud_repeats_points_only_if_it_must():
    cloud = SURFACES["cloud"]
    every = {tuple(point) for point in cloud.points.tolist()}
    for count in (10, 500):
        drawn = [tuple(point) for point in cloud.sample(count, seeded()).tolist()]
        assert len(set(drawn)) == count
        assert set(drawn) <= every
    more = [tuple(point) for point in cloud.sample(501, seeded()).tolist()]
    assert set(more) < every


def test_a_cloud_with_no_more_points_is_drawn_as_it_is():
    cloud = SURFACES["cloud"]
    for count in (500, 501, 10_000):
        assert is_whole(cloud, count)
        assert torch.equal(drawn(cloud, count, seeded()), cloud.points)
    for surface in (cloud, SURFACES["voxels"]):
        assert not is_whole(surface, 499)
        assert torch.equal(drawn(surface, 499, seeded()), surface.sample(499, seeded()))


def test_a_grid_that_does_not_fit_into_bytes_is_refused():
    assert int(VoxelSurface(np.ones((LONGEST, 1, 1), bool)).faces.max()) == 2 * LONGEST
    with pytest.raises(ValueError, match=rf"at most {LONGEST} voxels along each axis, but has shape \(1, 128, 1\)"):
        VoxelSurface(np.ones((1, LONGEST + 1, 1), bool))
