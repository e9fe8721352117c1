import pytest
import roma
import torch

from equicaps.data import solid_shapes


def test_solids_are_seeded_and_named():
    data = solid_shapes(12)
    assert data.name == "solids (regenerated, seed 0)"
    assert data.classes == ("block", "chair", "cup", "rocket", "staircase")
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]
    again, more, other = solid_shapes(12), solid_shapes(30), solid_shapes(12, seed=1)
    for number, surface in enumerate(data.surfaces):
        assert surface.tobytes() == again.surfaces[number].tobytes() == more.surfaces[number].tobytes()
        assert surface.tobytes() != other.surfaces[number].tobytes()
        assert torch.linalg.vector_norm(surface.triangles, dim=-1).max() == pytest.approx(1)
    assert data.surfaces[0].tobytes() != data.surfaces[5].tobytes()
    assert len(solid_shapes(0)) == 0


TURNS = roma.rotvec_to_rotmat(
    torch.cat([angle * torch.eye(3) for angle in (torch.pi / 2, torch.pi, -torch.pi / 2)])
).float()
MIRRORS = torch.stack([torch.eye(3) - 2 * torch.outer(axis, axis) for axis in torch.eye(3)])


def apart(one, other):
    """The mean distance of points to the nearest of another cloud, both ways."""
    distances = torch.cdist(one, other)
    return float(distances.amin(0).mean() + distances.amin(1).mean()) / 2


@pytest.mark.parametrize("number", range(5))
def test_no_turn_maps_a_solid_onto_itself(number):
    """Two samples of a solid are closer to each other than to any of its turns by 90 or 180 degrees."""
    surface = solid_shapes(5).surfaces[number]
    one, other = (surface.sample(1500, torch.Generator().manual_seed(seed)) for seed in (0, 1))
    same = apart(one, other)
    assert min(apart(one, other @ turn.T) for turn in TURNS) > 1.3 * same
    mirrored = min(apart(one, other @ mirror.T) for mirror in MIRRORS)
    symmetric = solid_shapes(5).classes[number] in ("cup", "rocket")
    assert (mirrored < 1.1 * same) == symmetric  # control: the comparison notices a symmetry where there is one


def test_classes_differ_more_than_proportions():
    """The nearest neighbour of a solid, as points, is of its class."""
    data = solid_shapes(40)
    points = data.sample(400)
    for number in range(10):
        distances = [apart(points[number], other) if place != number else 9.0 for place, other in enumerate(points)]
        assert data.labels[distances.index(min(distances))] == data.labels[number]


def test_solids_are_upright():
    """Along the third axis: the tip of a rocket is above, and its fin below."""
    data = solid_shapes(20)
    for surface in data.surfaces[torch.nonzero(data.labels == 3).flatten()]:
        points = surface.sample(4000, torch.Generator().manual_seed(0))
        axis = points[points[:, 2] > points[:, 2].max() - 0.1, :2].mean(0)  # through the tip
        out = torch.linalg.vector_norm(points[:, :2] - axis, dim=-1)
        assert points[out.argmax(), 2] < points[:, 2].median()
