"""Moments of neighbourhoods, in C and in torch, against plain loops."""

import math

import pytest
import torch
from torch.autograd import forward_ad

from equicaps.functional import local_moments as module
from equicaps.functional.compiled import library
from equicaps.functional.local_moments import MOST_RINGS, bumps, local_moments, monomials, plain_moments
from equicaps.groups import SO3

compiled = pytest.mark.skipif(library("local_moments") is None, reason="no C compiler for the kernel")


def cloud(batch=2, points=37, centres=5, dtype=torch.float32):
    """Points, of which one is padding, and centres, of which one is far from all of them."""
    points = torch.randn(batch, points, 3, dtype=dtype)
    weights = torch.rand(points.shape[:2], dtype=dtype)
    weights[:, 3] = 0
    places = points[:, :centres].clone()
    places[:, -1] = 50
    return places, points, weights


def by_hand(centre, points, weights, radius, rings):
    """The definition, with numbers."""
    found = [[0.0] * 10 for _ in range(rings)]
    for point, weight in zip(points.tolist(), weights.tolist(), strict=True):
        x, y, z = ((a - b) / radius for a, b in zip(point, centre.tolist(), strict=True))
        g = max(0.0, 1 - x * x - y * y - z * z)
        for number in range(rings):
            k = rings + 1 - number
            bump = math.comb(rings + 1, k) * g**k * (1 - g) ** number
            for q, value in enumerate((1, x, y, z, x * x, y * y, z * z, x * y, x * z, y * z)):
                found[number][q] += weight * bump * value
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("rings", [1, 2, 4, MOST_RINGS])
def test_moments_are_sums_over_neighbours(rings, dtype, tolerance):
    centres, points, weights = cloud(dtype=dtype)
    found = local_moments(centres, points, weights, radius=1.5, rings=rings)
    for b in range(2):
        for m in range(5):
            expected = by_hand(centres[b, m], points[b], weights[b], 1.5, rings)
            torch.testing.assert_close(found[b, m].double(), expected, **tolerance)
    assert (found[:, -1] == 0).all()  # nobody is there
    assert (found[:, :, :, 0] > 0).any()


@compiled
@pytest.mark.parametrize("points", [1, 16, 1000])
@pytest.mark.parametrize("rings", range(1, MOST_RINGS + 1))
def test_the_kernel_equals_torch(points, rings, monkeypatch):
    """Numbers of points that fill no vector, too; the kernel is what runs."""
    given = cloud(points=max(points, 6), centres=5)
    expected = plain_moments(*(tensor.double() for tensor in given), radius=0.7, rings=rings)
    monkeypatch.setattr(module, "plain_moments", None)  # would be an error
    found = local_moments(*given, radius=0.7, rings=rings)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-6 * expected.abs().max().item())
    with pytest.raises(AssertionError):  # control: the innermost bump is not the next one
        torch.testing.assert_close(
            found.double(), expected.roll(1, -1), rtol=1e-5, atol=2e-6 * expected.abs().max().item()
        )


def test_points_that_need_gradients_get_them():
    """The kernel has none, so torch computes; against finite differences."""
    centres, points, weights = cloud(1, 7, 2, torch.float64)
    points.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: local_moments(centres, x, weights, radius=2.0, rings=3), points)
    single = points.detach().float().requires_grad_()
    local_moments(centres.float(), single, weights.float(), radius=2.0, rings=3).sum().backward()
    assert single.grad.abs().sum() > 0


def test_tangents_are_not_dropped():
    """Forward-mode derivatives agree with those of the backward mode."""
    centres, points, weights = (entry.float() for entry in cloud(1, 7, 2, torch.float64))
    direction = torch.randn_like(points)
    with forward_ad.dual_level():
        found = local_moments(centres, forward_ad.make_dual(points, direction), weights, radius=2.0, rings=3)
        tangent = forward_ad.unpack_dual(found.sum()).tangent
    points.requires_grad_()
    (gradient,) = torch.autograd.grad(local_moments(centres, points, weights, radius=2.0, rings=3).sum(), [points])
    torch.testing.assert_close(tangent, (gradient * direction).sum(), rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    "shapes", [((3, 4, 3), (1, 16, 3), (1, 16)), ((1, 4, 2), (1, 16, 3), (1, 16)), ((1, 4, 3), (1, 16, 3), (1, 9))]
)
def test_shapes_that_do_not_fit_are_refused_before_the_kernel_reads(shapes):
    with pytest.raises(ValueError, match=r"local_moments: `centres` must have shape \(batch, m, 3\)"):
        local_moments(*(torch.zeros(shape) for shape in shapes), radius=1.0, rings=2)


def test_moments_rotate_and_do_not_depend_on_the_order(dtype, tolerance):
    """Scalars stay, vectors rotate; a control claims that vectors stay."""
    centres, points, weights = cloud(dtype=dtype)
    R = SO3().random(dtype=dtype)
    order = torch.randperm(points.shape[1])
    before = local_moments(centres, points, weights, radius=1.5, rings=3)
    after = local_moments(SO3().act(R, centres), SO3().act(R, points)[:, order], weights[:, order], radius=1.5, rings=3)
    torch.testing.assert_close(after[..., 0], before[..., 0], **tolerance)
    torch.testing.assert_close(after[..., 1:4], SO3().act(R, before[..., 1:4]), **tolerance)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(after[..., 1:4], before[..., 1:4], **tolerance)


def test_bumps_vanish_smoothly_at_the_rim():
    inside = torch.tensor([-0.5, 0.0, 1e-4, 1.0], dtype=torch.float64, requires_grad=True)
    for number in range(4):
        bump = bumps(inside, 4)[number]
        assert bump[:2].tolist() == [0, 0]
        assert 0 <= bump[2] < 1e-6
        assert bump[3] == (1 if number == 0 else 0)
        (slope,) = torch.autograd.grad(bump.sum(), inside)
        assert slope[:2].abs().max() == 0


def test_monomials_are_in_the_order_of_the_kernel():
    x, y, z = 2.0, 3.0, 5.0
    assert monomials(torch.tensor([x, y, z])).tolist() == [1, x, y, z, 4, 9, 25, 6, 10, 15]
