import cmath
import math

import pytest
import torch
import torch.nn.functional as F
from turning import turn_grid, turn_poses

from equicaps.functional import (
    agreement_pool,
    harmonic_convolution,
    spline_basis,
    spline_convolution,
    window_positions,
)
from equicaps.functional.sparse_convolution import rings
from equicaps.groups import SO2

GEOMETRIES = [(2, 2), (3, 1), (3, 2), (4, 1)]
geometry = pytest.mark.parametrize(("kernel_size", "stride"), GEOMETRIES)
KINDS = ("spline 1", "spline 2", "spline 3", "harmonic 1", "harmonic 3")
kinds = pytest.mark.parametrize("kind", KINDS)


def convolution(kind, kernel_size, stride, channels, outputs, dtype):
    """A convolution with fixed random weights, and its kernel ψ_jc(z) as a plain function of a position."""
    family, number = kind.split()
    number = int(number)
    if family == "spline":
        weight = torch.randn(outputs, channels, 5, 5, dtype=dtype)
        options = {"degree": number, "kernel_size": kernel_size, "stride": stride}
        radius = max(1, kernel_size - 1) / math.sqrt(2)

        def psi(j, c, x, y):
            bx, by = (spline_basis(torch.tensor(v, dtype=torch.float64), number, 5, radius) for v in (x, y))
            return float(bx @ weight[j, c].double() @ by)

        return lambda f, p: spline_convolution(f, p, weight, **options), psi
    radii = rings(kernel_size)
    weight = torch.randn(outputs, channels, 2 * number + 1, len(radii), dtype=dtype)

    def psi(j, c, x, y):
        ring = min(range(len(radii)), key=lambda r: abs(radii[r] - math.hypot(x, y)))
        w = weight[j, c, :, ring].tolist()
        if math.hypot(x, y) < 1e-6:
            return w[0]
        angle = math.atan2(y, x)
        terms = [complex(w[2 * m - 1], w[2 * m]) * cmath.exp(1j * m * angle) for m in range(1, number + 1)]
        return w[0] + sum(terms).real

    return lambda f, p: harmonic_convolution(f, p, weight, kernel_size=kernel_size, stride=stride), psi


def sample(kernel_size, stride, dtype, outputs=2, batch=2):
    height, width = kernel_size + 2 * stride, kernel_size + stride
    features = torch.randn(batch, 3, height, width, dtype=dtype)
    return features, SO2().random(batch, outputs, 3, 2, dtype=dtype)


@geometry
@kinds
def test_equals_plain_loops(kind, kernel_size, stride, dtype, tolerance):
    """out_j(x) = Σ_u Σ_c f_c(x + u) ψ_jc(p_j(x)⁻¹ u), at arbitrary poses."""
    convolve, psi = convolution(kind, kernel_size, stride, 3, 2, dtype)
    features, poses = sample(kernel_size, stride, dtype, batch=1)
    positions = window_positions(kernel_size, dtype=torch.float64).tolist()
    expected = torch.zeros(1, 2, 3, 2, dtype=torch.float64)
    for j in range(2):
        for row in range(3):
            for column in range(2):
                px, py = poses[0, j, row, column].tolist()
                for k, (ux, uy) in enumerate(positions):
                    z = (px * ux + py * uy, px * uy - py * ux)
                    for c in range(3):
                        value = features[0, c, row * stride + k // kernel_size, column * stride + k % kernel_size]
                        expected[0, j, row, column] += value.item() * psi(j, c, *z)
    torch.testing.assert_close(convolve(features, poses).double(), expected, rtol=1e-4, atol=20 * tolerance["atol"])


@pytest.mark.parametrize("quarters", [1, 2, 3])
@geometry
@kinds
def test_features_are_invariant_under_a_joint_turn(kind, kernel_size, stride, quarters, dtype, tolerance):
    """Theorem 3: [(g ∘ f) ⋆ ψ](g ∘ p) = [f ⋆ ψ](p); without rotating the poses it does not hold."""
    convolve, _ = convolution(kind, kernel_size, stride, 3, 2, dtype)
    features, poses = sample(kernel_size, stride, dtype)
    poses[0, 0] = 0  # undefined ones, too
    expected = turn_grid(convolve(features, poses), quarters)
    moved = convolve(turn_grid(features, quarters), turn_poses(SO2(), poses, quarters))
    torch.testing.assert_close(moved, expected, rtol=1e-5, atol=10 * tolerance["atol"])
    still = convolve(turn_grid(features, quarters), turn_grid(poses, quarters))
    with pytest.raises(AssertionError):
        torch.testing.assert_close(still, expected, rtol=1e-3, atol=1e-3)


@kinds
def test_kernels_are_continuous_in_the_pose(kind, dtype):
    """The kernel rotates by any angle: a small rotation of the pose changes the output a little, all the way round."""
    convolve, _ = convolution(kind, 3, 1, 3, 2, dtype)
    features, _ = sample(3, 1, dtype, batch=1)
    angles = torch.linspace(0, 2 * math.pi, 721, dtype=dtype)
    poses = SO2().exp(angles[:, None])[:, None, None, None].expand(721, 2, 3, 2, 2)
    outputs = convolve(features.expand(721, -1, -1, -1), poses)
    steps = (outputs[1:] - outputs[:-1]).abs().amax()
    assert steps < 0.05 * (outputs.max() - outputs.min())
    torch.testing.assert_close(outputs[0], outputs[-1], rtol=1e-4, atol=1e-4)
    assert (outputs.std(0) > 1e-2).any()


@kinds
def test_product_group_is_equivariant_in_the_dense_factor(kind, dtype, tolerance):
    """Theorem 4, SO(2) x R²: a shift of features and poses shifts the output, a rotation does not change it."""
    convolve, _ = convolution(kind, 3, 1, 3, 2, dtype)
    features = torch.zeros(1, 3, 12, 12, dtype=dtype)
    features[..., 4:8, 4:8] = torch.randn(1, 3, 4, 4, dtype=dtype)
    poses = torch.zeros(1, 2, 10, 10, 2, dtype=dtype)
    poses[:, :, 3:7, 3:7] = SO2().random(1, 2, 4, 4, dtype=dtype)
    still = convolve(features, poses)
    shifted = convolve(features.roll((2, -1), (2, 3)), poses.roll((2, -1), (2, 3)))
    torch.testing.assert_close(shifted, still.roll((2, -1), (2, 3)), **tolerance)
    assert not torch.allclose(shifted, still, **tolerance)
    turned = convolve(turn_grid(features, 1), turn_poses(SO2(), poses, 1))
    torch.testing.assert_close(turned, turn_grid(still, 1), rtol=1e-5, atol=10 * tolerance["atol"])


@pytest.mark.parametrize("kind", ["spline 3", "harmonic 2"])
def test_gradients_are_correct(kind):
    convolve, _ = convolution(kind, 2, 2, 3, 2, torch.float64)
    features, poses = sample(2, 2, torch.float64, batch=1)
    assert torch.autograd.gradcheck(convolve, (features.requires_grad_(), poses.requires_grad_()))


def test_undefined_poses_have_finite_gradients(dtype):
    for kind in KINDS:
        convolve, _ = convolution(kind, 3, 1, 3, 2, dtype)
        features, poses = sample(3, 1, dtype)
        poses = torch.zeros_like(poses).requires_grad_()
        convolve(features, poses).sum().backward()
        assert poses.grad.isfinite().all()


def test_equal_weights_pool_like_the_average(dtype, tolerance):
    """agreement_pool between avg_pool2d (all weights equal) and picking one value (one weight)."""
    features = torch.randn(2, 3, 6, 4, dtype=dtype)
    equal = torch.ones(2, 3, 2, 5, 12, dtype=dtype)
    torch.testing.assert_close(agreement_pool(features, equal), F.avg_pool2d(features, 2), **tolerance)
    one = torch.zeros(2, 3, 2, 5, 3, 4, dtype=dtype)
    one[..., 1] = torch.rand(2, 3, 2, 5, 3, dtype=dtype) + 0.5  # top right of every window
    torch.testing.assert_close(agreement_pool(features, one.flatten(-2)), features[:, :, ::2, 1::2], **tolerance)
    assert not torch.allclose(agreement_pool(features, one.flatten(-2)), F.avg_pool2d(features, 2))


def test_autocast_does_not_reach_the_pooling():
    features, weights = torch.randn(2, 3, 6, 4), torch.rand(2, 3, 2, 5, 12)
    with torch.autocast("cpu", torch.bfloat16):
        found = agreement_pool(features, weights)
    torch.testing.assert_close(found, agreement_pool(features, weights), rtol=0, atol=0)


def test_windows_without_agreement_pool_to_zero(dtype):
    features = torch.randn(1, 1, 2, 2, dtype=dtype, requires_grad=True)
    pooled = agreement_pool(features, torch.zeros(1, 1, 1, 3, 4, dtype=dtype))
    pooled.sum().backward()
    assert pooled.item() == 0
    assert features.grad.isfinite().all()


def test_weights_of_other_windows_are_refused():
    with pytest.raises(ValueError, match=r"agreement_pool: `weights` .* do not belong"):
        agreement_pool(torch.zeros(1, 2, 4, 4), torch.zeros(1, 2, 2, 3, 4))
