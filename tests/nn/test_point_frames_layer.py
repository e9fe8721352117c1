import math

import pytest
import torch
from clouds import cloud, rotate, rotate_capsules, rotation

from equicaps.groups import SO3
from equicaps.nn import PointFrames


def test_frames_rotate_with_the_cloud(dtype, tolerance):
    """frames(R x).poses = R ∘ frames(x).poses, and activations do not change; the control is that poses do move."""
    points, R = cloud(2, 60, dtype=dtype), rotation(dtype)
    still, moved = PointFrames(0.6)(points), PointFrames(0.6)(rotate(R, points))
    expected = rotate_capsules(R, still)
    torch.testing.assert_close(moved.poses, expected.poses, **tolerance)
    torch.testing.assert_close(moved.activations, expected.activations, **tolerance)
    assert (still.activations > 0.05).float().mean() > 0.5
    with pytest.raises(AssertionError):
        torch.testing.assert_close(moved.poses, still.poses, **tolerance)


def test_a_mirror_image_has_other_frames(dtype, tolerance):
    """Control: frames are rotations, so the same identity fails for a reflection."""
    points = cloud(2, 60, dtype=dtype)
    mirror = torch.diag(torch.tensor([-1.0, 1.0, 1.0], dtype=dtype))
    still, moved = PointFrames(0.6)(points), PointFrames(0.6)(points @ mirror)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(moved.poses, (mirror @ still.poses.unflatten(-1, (3, 3))).flatten(-2), **tolerance)


def test_poses_are_rotations_times_how_far_they_are_present(dtype):
    group = SO3()
    poses, activations = PointFrames(0.6)(cloud(2, 60, dtype=dtype))
    defined = group.presence(poses) > 0.999
    assert defined.any()
    assert group.contains(poses[defined]).all()
    assert ((activations >= 0) & (activations <= 1)).all()


def test_frames_equal_plain_loops(dtype, tolerance):
    """The formula of the docstring, point by point, where nothing fades."""
    points = cloud(1, 30, dtype=dtype)
    poses, activations = PointFrames(0.8)(points)
    centroid, compared = points[0].mean(0), 0
    loose = {name: 10 * value for name, value in tolerance.items()}
    for i, x in enumerate(points[0]):
        C = torch.zeros(3, 3, dtype=dtype)
        for y in points[0]:
            u = (y - x) / 0.8
            C += max(0.0, 1 - float(u @ u)) ** 2 * torch.outer(u, u)
        o = (x - centroid) / (x - centroid).norm()
        B = torch.eye(3, dtype=dtype) - 2 * C / C.trace()
        a = B @ B @ o
        e1 = a / a.norm()
        across = o - (o @ e1) * e1
        if a.norm() > 0.21 and across.norm() > 0.21 and (x - centroid).norm() > 0.24:
            e2 = across / across.norm()
            expected = torch.stack((e1, e2, torch.linalg.cross(e1, e2)), -1).flatten()
            torch.testing.assert_close(poses[0, i, 0], expected, **loose)
            torch.testing.assert_close(activations[0, i, 0], a.norm() * across.norm(), **loose)
            compared += 1
    assert compared > 5


def grid():
    """A regular grid, of which only the neighbourhoods in the middle are complete."""
    ticks = torch.arange(-3.0, 4.0)
    return torch.cartesian_prod(ticks, ticks, ticks).unsqueeze(0)


def sphere():
    """Points that look alike from the centroid: the corners and the axes of a cube, at distance 1."""
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3) / math.sqrt(3)
    return torch.cat((torch.eye(3), -torch.eye(3), corners)).unsqueeze(0)


@pytest.mark.parametrize("shape", ["grid", "sphere", "line", "pair", "one", "equal"])
def test_symmetric_neighbourhoods_have_no_frame_and_finite_gradients(shape, dtype):
    """Undefined pose, activation 0; also for two points, one point, and equal points."""
    line = torch.linspace(-1, 1, 9)[:, None] * torch.tensor([1.0, 2.0, 2.0])
    points = {
        "grid": grid(), "sphere": sphere(), "line": line[None], "pair": line[None, :2],
        "one": torch.ones(1, 1, 3), "equal": torch.full((1, 7, 3), 0.3),
    }[shape].to(dtype).requires_grad_()  # fmt: skip
    weights = torch.ones(points.shape[:2], dtype=dtype, requires_grad=True)
    centres = points[points.abs().amax(-1) < 2].unsqueeze(0) if shape == "grid" else points
    poses, activations = PointFrames(1.5)(points, weights, centres)
    assert poses.abs().max() < 1e-6
    assert activations.abs().max() < 1e-6
    (poses.sum() + activations.sum()).backward()
    assert points.grad.isfinite().all()
    assert weights.grad.isfinite().all()


def test_that_a_lopsided_cloud_has_frames(dtype):
    """Control: the same assertion fails where there is no symmetry."""
    assert PointFrames(0.6)(cloud(1, 60, dtype=dtype)).poses.abs().max() > 0.5


def test_padding_order_and_place_do_not_matter(dtype, tolerance):
    """Points of weight 0, permutations and translations; a point of weight 1 does change frames."""
    frames, points = PointFrames(0.6), cloud(1, 60, dtype=dtype)
    still = frames(points)
    padded = torch.cat((points, cloud(1, 5, dtype=dtype, seed=5) + 0.1), 1)
    weights = torch.cat((torch.ones(1, 60, dtype=dtype), torch.zeros(1, 5, dtype=dtype)), 1)
    order = torch.randperm(60)
    torch.testing.assert_close(frames(padded, weights, points).poses, still.poses, **tolerance)
    torch.testing.assert_close(frames(points[:, order]).poses, still.poses[:, order], **tolerance)
    torch.testing.assert_close(frames(points + 0.7).poses, still.poses, rtol=0, atol=10 * tolerance["atol"])
    assert (frames(padded, None, points).poses - still.poses).abs().max() > 1e-3


@pytest.mark.parametrize("radius", [0.0, -1.0, float("inf")])
def test_the_radius_must_be_positive(radius):
    with pytest.raises(ValueError, match="`radius` must be positive"):
        PointFrames(radius)


def test_repr_shows_the_mathematical_signature():
    assert repr(PointFrames(0.5)) == "PointFrames((R^3)^n -> SO(3)^n, radius=0.5)"
