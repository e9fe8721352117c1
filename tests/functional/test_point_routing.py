import pytest
import torch
from clouds import cloud, rotate, rotation

from equicaps.functional import nearest_neighbours
from equicaps.functional.point_routing import take


def sums(points, weights, centres, values, **options):
    """What layers read from neighbourhoods: a weighted sum of values and offsets."""
    near = nearest_neighbours(points, weights, centres, **options)
    together = torch.cat((take(values, near.indices), near.offsets), -1)
    return torch.einsum("bik,bikc->bic", near.weights, together)


@pytest.fixture
def case(dtype):
    points = cloud(2, 50, dtype=dtype)
    return points, torch.ones(2, 50, dtype=dtype), points[:, :7], torch.randn(2, 50, 4, dtype=dtype)


def test_neighbourhoods_equal_plain_loops(case, dtype, tolerance):
    """Rim: the radius, or the distance of the nearest point left out; weight (1 - d²/ρ²)²."""
    points, weights, centres, values = case
    actual = sums(points, weights, centres, values, radius=0.9, count=6)
    for b in range(2):
        for i in range(7):
            offsets = (points[b] - centres[b, i]) / 0.9
            distances, order = offsets.norm(dim=-1).sort()
            rim = min(1.0, float(distances[6]))
            expected = torch.zeros(7, dtype=dtype)
            for distance, j in zip(distances[:6], order[:6], strict=True):
                share = max(0.0, 1 - float(distance) ** 2 / rim**2) ** 2
                expected += share * torch.cat((values[b, j], offsets[j]))
            torch.testing.assert_close(actual[b, i], expected, **tolerance)


@pytest.mark.parametrize("count", [6, 100])
def test_order_and_padding_do_not_matter(case, count, dtype, tolerance):
    points, weights, centres, values = case
    options = {"radius": 0.9, "count": count}
    still = sums(points, weights, centres, values, **options)
    order = torch.randperm(50)
    torch.testing.assert_close(
        sums(points[:, order], weights[:, order], centres, values[:, order], **options), still, **tolerance
    )
    more = torch.cat((points, centres + 0.05), 1), torch.cat((values, torch.randn(2, 7, 4, dtype=dtype)), 1)
    zero, one = (torch.cat((weights, torch.full((2, 7), w, dtype=dtype)), 1) for w in (0.0, 1.0))
    torch.testing.assert_close(sums(more[0], zero, centres, more[1], **options), still, **tolerance)
    assert (sums(more[0], one, centres, more[1], **options) - still).abs().max() > 1e-2


def test_nothing_jumps_where_another_neighbour_is_taken():
    """Two points swap places as the first one left out, and one fades away: sums change by no more than the step."""
    step = 1e-3
    t = torch.arange(0, 1, step, dtype=torch.float64)
    points = cloud(1, 20, dtype=torch.float64).repeat(len(t), 1, 1)
    values, centres = torch.randn(1, 20, 3, dtype=torch.float64).expand(len(t), -1, -1), points[:, :1]
    order = (points - centres).norm(dim=-1)[0].argsort()
    points[:, order[5]] = torch.lerp(points[:, order[5]], centres[:, 0], t[:, None] / 2)
    weights = torch.ones(len(t), 20, dtype=torch.float64)
    weights[:, order[2]] = 1 - t
    taken = nearest_neighbours(points, weights, centres, radius=4.0, count=5).indices.sort(-1).values
    assert len(taken.unique(dim=0)) > 2
    smooth = sums(points, weights, centres, values, radius=4.0, count=5)
    assert smooth.diff(dim=0).abs().max() < 100 * step
    hard = take(values, taken).sum(2)
    assert hard.diff(dim=0).abs().max() > 0.5, "control: sums without rim weights do jump"


def test_offsets_rotate_with_the_cloud(case, dtype, tolerance):
    points, weights, centres, values = case
    R = rotation(dtype)
    still = sums(points, weights, centres, values, radius=0.9, count=6)
    moved = sums(rotate(R, points), weights, rotate(R, centres), values, radius=0.9, count=6)
    expected = torch.cat((still[..., :4], rotate(R, still[..., 4:])), -1)
    torch.testing.assert_close(moved, expected, **tolerance)
    assert not torch.allclose(moved, still, **tolerance)


def test_equal_points_have_finite_gradients(dtype):
    points = torch.full((1, 9, 3), 0.3, dtype=dtype, requires_grad=True)
    near = nearest_neighbours(points, torch.ones(1, 9, dtype=dtype), points[:, :2], radius=1.0, count=4)
    assert (near.weights == 1).all()
    (near.weights.sum() + near.offsets.sum()).backward()
    assert points.grad.isfinite().all()
