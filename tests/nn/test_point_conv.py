import math

import pytest
import torch
from clouds import cloud, rotate, rotate_capsules, rotation, scattered_capsules

from equicaps.functional import PointPoses
from equicaps.groups import SO3
from equicaps.nn import PointConv


def sample(dtype):
    points = cloud(2, 30, dtype=dtype)
    centres = points[:, :5]
    return points, torch.randn(2, 30, 3, dtype=dtype), centres, scattered_capsules(centres, 4)


@pytest.mark.parametrize("norm", [False, True])
def test_features_do_not_change_when_cloud_and_poses_rotate(norm, dtype, tolerance):
    """Theorem 3; the control is that they do change when only the cloud rotates."""
    layer, (points, features, centres, capsules) = PointConv(3, 4, 2, radius=1.0, norm=norm).to(dtype), sample(dtype)
    R = rotation(dtype)
    still = layer(points, features, centres, capsules)
    moved = layer(rotate(R, points), features, rotate(R, centres), rotate_capsules(R, capsules))
    wrong = layer(rotate(R, points), features, rotate(R, centres), capsules)
    assert still.shape == (2, 5, 8)
    torch.testing.assert_close(moved, still, **tolerance)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(wrong, still, **tolerance)


def test_the_layer_equals_plain_loops(dtype, tolerance):
    """The kernel is evaluated at p⁻¹u, one neighbour after the other."""
    layer = PointConv(2, 2, 2, radius=1.0).to(dtype)
    torch.nn.init.normal_(layer.bias)
    points = torch.tensor([[[0.1, 0.2, 0.0], [-0.3, 0.1, 0.2], [0.0, -0.4, 0.1], [2.0, 0.0, 0.0]]], dtype=dtype)
    centres, features = torch.zeros(1, 1, 3, dtype=dtype), torch.randn(1, 4, 2, dtype=dtype)
    capsules = scattered_capsules(centres, 2)
    actual, bias = layer(points, features, centres, capsules).detach(), layer.bias.detach()
    shares = [float((1 - points[0, k].square().sum()) ** 2) for k in range(3)]
    for j in range(2):
        for q in range(2):
            total = 0.0
            for k in range(3):
                x, y, z = SO3().act(SO3().inverse(capsules.poses[0, 0, j]), points[0, k]).tolist()
                powers = [1, x, y, z, x * x, y * y, z * z, y * z, z * x, x * y]
                s = x * x + y * y + z * z
                for r, centre in enumerate((0.0, 0.5, 1.0)):
                    for p, power in enumerate(powers):
                        kernel = layer.weight[j, q, :, r, p].detach() * math.exp(-8 * (s - centre) ** 2) * power
                        total += shares[k] / sum(shares) * float(kernel @ features[0, k])
            expected = (total + float(bias[j, q])) * float(capsules.activations[0, 0, j])
            torch.testing.assert_close(float(actual[0, 0, 2 * j + q]), expected, **tolerance)


def test_order_and_padding_do_not_matter(dtype, tolerance):
    layer, (points, features, centres, capsules) = PointConv(3, 4, radius=1.0).to(dtype), sample(dtype)
    still = layer(points, features, centres, capsules)
    order = torch.randperm(30)
    torch.testing.assert_close(layer(points[:, order], features[:, order], centres, capsules), still, **tolerance)
    more, other = torch.cat((points, centres), 1), torch.cat((features, features[:, :5] + 1), 1)
    weights = torch.cat((torch.ones(2, 30, dtype=dtype), torch.zeros(2, 5, dtype=dtype)), 1)
    torch.testing.assert_close(layer(more, other, centres, capsules, weights), still, **tolerance)
    assert (layer(more, other, centres, capsules) - still).abs().max() > 1e-3


@pytest.mark.parametrize("norm", [False, True])
def test_inactive_capsules_have_no_features_and_finite_gradients(norm, dtype):
    layer, (points, features, centres, (poses, _)) = PointConv(3, 4, radius=1.0, norm=norm).to(dtype), sample(dtype)
    given = [part.requires_grad_() for part in (points, features, torch.zeros_like(poses))]
    silent = PointPoses(given[2], torch.zeros_like(poses[..., 0]))
    out = layer(given[0], given[1], centres.detach(), silent)
    assert (out == 0).all()
    out.sum().backward()
    assert all(part.grad.isfinite().all() for part in given)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_arguments_are_explained():
    points, features, centres, capsules = sample(torch.float32)
    with pytest.raises(ValueError, match="`capsules` must be at least 1"):
        PointConv(3, 0, radius=1.0)
    with pytest.raises(ValueError, match=r"`features` must have shape \(2, 30, 5\)"):
        PointConv(5, 4, radius=1.0)(points, features, centres, capsules)
    with pytest.raises(ValueError, match=r"`poses` must have shape \(2, 5, 7, 9\)"):
        PointConv(3, 7, radius=1.0)(points, features, centres, capsules)


def test_repr_shows_the_mathematical_signature():
    assert "3 -> 4 capsules x 2, radius=1.0, neighbours=16, norm=True" in repr(
        PointConv(3, 4, 2, radius=1.0, norm=True)
    )
