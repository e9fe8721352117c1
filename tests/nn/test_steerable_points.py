"""Steerable capsules on points: Theorems 1 to 3 for every rotation."""

import pytest
import torch

from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.point_choice import PointChoice
from equicaps.groups import SO3
from equicaps.nn.steerable_points import FirstPointCapsules, SteerablePointCapsules


def capsules(dtype, n=30, count=4):
    return CapsuleCloud(
        torch.randn(2, n, 3, dtype=dtype), torch.rand(2, n, dtype=dtype),
        SO3().random(2, n, count, dtype=dtype), torch.rand(2, n, count, dtype=dtype),
    )  # fmt: skip


def chosen(dtype, count=6):
    return PointChoice(torch.arange(count).expand(2, -1), torch.rand(2, count, dtype=dtype))


def layer_of(dtype, central):
    layer = SteerablePointCapsules(4, 5, radius=1.5, rings=2, order=1 if central else 2, central=central).to(dtype)
    layer(capsules(dtype), None if central else chosen(dtype))
    return layer.eval()


@pytest.mark.parametrize("central", [False, True])
def test_poses_rotate_and_activations_stay(central, dtype, tolerance):
    layer, cloud = layer_of(dtype, central), capsules(dtype)
    at = None if central else chosen(dtype)
    R = SO3().random(dtype=dtype)
    turned = cloud._replace(positions=SO3().act(R, cloud.positions), poses=SO3().compose(R, cloud.poses))
    before, after = layer(cloud, at), layer(turned, at)
    torch.testing.assert_close(after.positions, SO3().act(R, before.positions), **tolerance)
    torch.testing.assert_close(after.poses, SO3().compose(R, before.poses), **tolerance)
    torch.testing.assert_close(after.activations, before.activations, **tolerance)
    assert before.activations.max() > 0.1
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after.poses, before.poses, **tolerance)


def test_that_rotating_positions_alone_is_no_symmetry(dtype, tolerance):
    """Control: relative poses are read, too."""
    layer, cloud, at = layer_of(dtype, False), capsules(dtype), chosen(dtype)
    turned = cloud._replace(positions=SO3().act(SO3().random(dtype=dtype), cloud.positions))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(layer(turned, at).activations, layer(cloud, at).activations, **tolerance)


def test_order_and_padding_do_not_matter(dtype, tolerance):
    layer, cloud = layer_of(dtype, True), capsules(dtype)
    order = torch.randperm(30)
    mixed = CapsuleCloud(*(entry[:, order] for entry in cloud))
    padded = CapsuleCloud(*(torch.cat((entry, torch.ones_like(entry[:, :3])), 1) for entry in cloud))
    padded.weights[:, -3:] = 0
    for other in (mixed, padded):
        torch.testing.assert_close(layer(other).activations, layer(cloud).activations, **tolerance)


def test_capsules_beyond_the_radius_do_not_count(dtype):
    layer, cloud, at = layer_of(dtype, False), capsules(dtype), chosen(dtype)
    far = cloud._replace(positions=cloud.positions.clone())
    far.positions[:, 20:] += 100
    changed = far._replace(activations=far.activations.clone())
    changed.activations[:, 20:] += 1
    torch.testing.assert_close(layer(far, at).activations, layer(changed, at).activations)


def test_first_capsules_rotate_and_see_their_neighbourhood(dtype, tolerance):
    points, weights = torch.randn(2, 60, 3, dtype=dtype), torch.ones(2, 60, dtype=dtype)
    layer = FirstPointCapsules(5, radius=1.0, rings=3).to(dtype)
    layer(points, weights, points[:, :9], weights[:, :9])
    layer.eval()
    R = SO3().random(dtype=dtype)
    before = layer(points, weights, points[:, :9], weights[:, :9])
    turned = SO3().act(R, points)
    after = layer(turned, weights, turned[:, :9], weights[:, :9])
    torch.testing.assert_close(after.poses, SO3().compose(R, before.poses), **tolerance)
    torch.testing.assert_close(after.activations, before.activations, **tolerance)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after.poses, before.poses, **tolerance)
    mirrored = points * torch.tensor([-1.0, 1, 1], dtype=dtype)
    other = layer(mirrored, weights, mirrored[:, :9], weights[:, :9])
    assert (other.activations - before.activations).abs().max() > 1e-3  # a mirror image is another shape


@pytest.mark.usefixtures("without_shape_checks")
def test_mistakes_are_explained():
    layer, cloud = SteerablePointCapsules(4, 5, radius=1.5), capsules(torch.float32)
    with pytest.raises(ValueError, match="needs `chosen` points"):
        layer(cloud)
    with pytest.raises(ValueError, match="origin"):
        SteerablePointCapsules(4, 5, radius=1.5, central=True)(cloud, chosen(torch.float32))
    with pytest.raises(ValueError, match=r"\(batch, n, 4\)"):
        layer(cloud._replace(activations=cloud.activations[..., :2]), chosen(torch.float32))
    with pytest.raises(TypeError, match="one dtype"):
        layer(cloud._replace(poses=cloud.poses.double()), chosen(torch.float32))
    with pytest.raises(ValueError, match="radius"):
        SteerablePointCapsules(4, 5, radius=0.0)
    with pytest.raises(ValueError, match="only a central layer"):
        SteerablePointCapsules(4, 5, radius=1.0, skipped=3)
    reads = SteerablePointCapsules(4, 5, radius=1.5, central=True, skipped=4)
    with pytest.raises(ValueError, match="reads 4 `skipped` capsules, but 0 were given"):
        reads(cloud)
    with pytest.raises(ValueError, match="reads 0 `skipped` capsules, but 4 were given"):
        layer(cloud, chosen(torch.float32), cloud)
    with pytest.raises(ValueError, match="order"):
        SteerablePointCapsules(4, 5, radius=1.0, order=3)
    with pytest.raises(ValueError, match="radius"):
        FirstPointCapsules(4, radius=-1.0)


def test_repr_is_the_signature():
    assert "radius 1.5, 2 rings, order 2" in repr(SteerablePointCapsules(4, 5, radius=1.5))
    assert "4 rings" in repr(FirstPointCapsules(4, radius=1.0))
