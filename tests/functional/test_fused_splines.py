"""The fused spline convolution against the dense one in torch, which is compared with plain loops elsewhere."""

from importlib.resources import files

import pytest
import torch
from turning import turn_grid, turn_poses

from equicaps.functional import fused_splines, sparse_convolution, spline_convolution
from equicaps.functional.compiled import library
from equicaps.functional.sparse_convolution import dense_spline_convolution
from equicaps.groups import SO2

pytestmark = pytest.mark.skipif(library("fused_splines") is None, reason="no C compiler for the kernel")

LAYERS = [(1, 16, 4, 2), (16, 32, 4, 2), (32, 32, 4, 2), (32, 64, 4, 2), (64, 10, 2, 2), (3, 5, 3, 1), (20, 3, 5, 1)]
layers = pytest.mark.parametrize("layer", LAYERS, ids=str)


def sample(layer, batch=3):
    """Features, poses (some undefined, some faint), control points, and the options of the convolution."""
    channels, outputs, kernel_size, stride = layer
    height, width = kernel_size + 3 * stride, kernel_size + 2 * stride
    poses = SO2().random(batch, outputs, 4, 3)
    poses[0, 0] = 0
    poses[-1] *= torch.rand(outputs, 4, 3, 1)
    tensors = (torch.randn(batch, channels, height, width), poses, torch.randn(outputs, channels, 5, 5))
    return [tensor.requires_grad_() for tensor in tensors], {"kernel_size": kernel_size, "stride": stride}


def with_gradients(convolve, tensors, direction):
    out = convolve(*tensors)
    return out, *torch.autograd.grad((out * direction).sum(), tensors)


def compare(fast, layer):
    """Values and gradients of a float32 implementation against the dense one in float64."""
    tensors, options = sample(layer)
    exact = [tensor.detach().double().requires_grad_() for tensor in tensors]
    direction = torch.randn(*tensors[1].shape[:-1])
    found = with_gradients(lambda *given: fast(*given, degree=1, **options), tensors, direction)
    expected = with_gradients(lambda *given: dense_spline_convolution(*given, degree=1, **options), exact, direction)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=2e-6 * other.abs().max().item())


@layers
def test_values_and_gradients_equal_the_dense_convolution(layer, monkeypatch):
    """On every layer shape of the networks; numbers of channels and windows that fill no vector, too."""
    monkeypatch.setattr(sparse_convolution, "dense_spline_convolution", None)  # would be an error
    compare(spline_convolution, layer)


@pytest.mark.parametrize("wrong", ["values", "gradient"])
def test_that_comparison_rejects_a_wrong_convolution(wrong):
    """Control: a small error in the values, or no gradient for the poses."""

    def broken(features, poses, weight, **options):
        out = spline_convolution(features, poses.detach() if wrong == "gradient" else poses, weight, **options)
        return out * 1.001 if wrong == "values" else out + 0 * poses.sum()

    with pytest.raises(AssertionError, match="not close"):
        compare(broken, LAYERS[1])


@pytest.mark.parametrize("quarters", [1, 2, 3])
@layers
def test_quarter_turns_give_the_same_bits(layer, quarters):
    """Theorem 3 without rounding; a turn of the features alone changes the output."""
    (features, poses, weight), options = sample(layer)
    with torch.no_grad():
        still = spline_convolution(features, poses, weight, degree=1, **options)
        turned = turn_grid(features, quarters)
        moved = spline_convolution(turned, turn_poses(SO2(), poses, quarters), weight, degree=1, **options)
        control = spline_convolution(turned, turn_grid(poses, quarters), weight, degree=1, **options)
    assert torch.equal(moved, turn_grid(still, quarters))
    assert not torch.allclose(control, moved, atol=1e-2)


@pytest.mark.parametrize("fused", [True, False])
def test_only_active_windows_are_computed(fused, monkeypatch):
    if not fused:
        monkeypatch.setattr(sparse_convolution, "fused_splines_fit", lambda *_: False)
    tensors, options = sample(LAYERS[1])
    active = torch.rand(3, 4, 3) < 0.5
    everywhere = spline_convolution(*tensors, degree=1, **options)
    found = spline_convolution(*tensors, degree=1, active=active, **options)
    expected = everywhere * active.unsqueeze(1)
    torch.testing.assert_close(found, expected)
    assert 0 < active.sum() < active.numel()
    gradients = [torch.autograd.grad(out.square().sum(), tensors) for out in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    none = spline_convolution(*tensors, degree=1, active=torch.zeros_like(active), **options)
    assert none.abs().max() == 0
    none.sum().backward()
    assert all(tensor.grad.abs().max() == 0 for tensor in tensors)


def test_a_pose_that_is_not_a_number_gives_no_number():
    (features, poses, weight), options = sample(LAYERS[1])
    poses = poses.detach().clone()
    poses[0, 0, 0, 0, 0], poses[1, 2, 1, 1, 1] = torch.nan, torch.inf
    found = spline_convolution(features, poses, weight, degree=1, **options)
    assert not found[0, 0, 0, 0].isfinite()
    assert not found[1, 2, 1, 1].isfinite()
    assert (~found.isfinite()).sum() == 2


def test_it_is_taken_where_it_fits_and_nowhere_else(monkeypatch):
    calls = []
    monkeypatch.setattr(sparse_convolution, "fused_spline_convolution", lambda *given, **_: calls.append("fused"))
    monkeypatch.setattr(sparse_convolution, "dense_spline_convolution", lambda *given, **_: calls.append("dense"))
    run = sparse_convolution.spline_convolution.__wrapped__
    while hasattr(run, "__wrapped__"):
        run = run.__wrapped__  # without the check of the result's shape
    for degree, size, kernel_size, dtype in (
        (1, 5, 4, torch.float32), (1, 3, 4, torch.float32), (2, 5, 4, torch.float32), (1, 4, 4, torch.float32),
        (1, 5, 1, torch.float32), (1, 5, 4, torch.float64),
    ):  # fmt: skip
        features, weight = torch.zeros(1, 2, 8, 8, dtype=dtype), torch.zeros(2, 2, size, size, dtype=dtype)
        grid = (8 - kernel_size) // 2 + 1
        poses = torch.zeros(1, 2, grid, grid, 2, dtype=dtype)
        run(features, poses, weight, degree=degree, kernel_size=kernel_size, stride=2)
    assert calls == ["fused"] * 2 + ["dense"] * 4


def test_windows_are_described_as_the_kernel_expects():
    source = (files("equicaps.functional") / "fused_splines.c").read_text()
    assert f"#define MOST_QUADRUPLES {fused_splines.MOST_QUADRUPLES}\n" in source
    assert f"#define TABLE {fused_splines.TABLE}\n" in source
    layer = fused_splines._geometry(8, 20, 5)
    assert layer.quadruples == fused_splines.MOST_QUADRUPLES
    assert layer.centre == -1
    assert fused_splines._geometry(3, 20, 5).centre == 21


def test_no_images_give_no_output_and_no_gradient():
    features, poses = torch.zeros(0, 2, 8, 8, requires_grad=True), torch.zeros(0, 3, 3, 3, 2, requires_grad=True)
    weight = torch.randn(3, 2, 5, 5, requires_grad=True)
    out = spline_convolution(features, poses, weight, degree=1, kernel_size=4, stride=2)
    assert out.shape == (0, 3, 3, 3)
    out.sum().backward()
    assert weight.grad.abs().max() == 0


def test_features_without_gradient_cost_none():
    """As images do; the other gradients are the same."""
    tensors, options = sample(LAYERS[0])
    features, poses, weight = tensors
    expected = torch.autograd.grad(spline_convolution(*tensors, degree=1, **options).square().sum(), tensors)[1:]
    out = spline_convolution(features.detach(), poses, weight, degree=1, **options)
    for one, other in zip(torch.autograd.grad(out.square().sum(), (poses, weight)), expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("wrong", ["poses", "control_points", "active", "batch", "dtype"])
def test_shapes_that_do_not_fit_are_refused_before_memory_is_read(wrong):
    (features, poses, weight), options = sample(LAYERS[1])
    active = torch.ones(poses.shape[0], *poses.shape[2:4], dtype=torch.bool)
    if wrong == "poses":
        poses = poses.repeat(1, 1, 2, 1, 1)
    elif wrong == "control_points":
        weight = weight[:, 1:]
    elif wrong == "active":
        active = active[:, 1:]
    elif wrong == "batch":
        features = features[1:]
    else:
        poses = poses.double()
    with pytest.raises((ValueError, TypeError), match="spline_convolution"):
        spline_convolution(features, poses, weight, degree=1, active=active, **options)
