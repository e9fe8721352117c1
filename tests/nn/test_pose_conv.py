import pytest
import torch
import torch.nn.functional as F
from turning import turn_grid, turn_poses

from equicaps.groups import SO2
from equicaps.nn import HarmonicKernel, ImagePoses, PoseConv2d, SpatialCapsules2d, SplineKernel

KERNELS = [SplineKernel(), SplineKernel(2, 4), SplineKernel(3), HarmonicKernel(), HarmonicKernel(4)]
kernels = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize(("kernel_size", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 1, 0), (5, 1, 2)])
@kernels
def test_output_is_invariant_under_a_joint_turn(kernel, kernel_size, stride, padding, quarters, dtype, tolerance):
    """Theorem 3 for the layer, with padding and bias; and the output does depend on the poses."""
    layer = PoseConv2d(3, 4, kernel_size, stride, padding, kernel=kernel).to(dtype)
    torch.nn.init.normal_(layer.bias)
    features = torch.randn(2, 3, 8, 6, dtype=dtype)
    grid = [(size + 2 * padding - kernel_size) // stride + 1 for size in (8, 6)]
    poses = SO2().random(2, 4, *grid, dtype=dtype)
    still = layer(features, poses)
    moved = layer(turn_grid(features, quarters), turn_poses(SO2(), poses, quarters))
    torch.testing.assert_close(moved, turn_grid(still, quarters), rtol=1e-5, atol=10 * tolerance["atol"])
    assert (layer(features, SO2().random(2, 4, *grid, dtype=dtype)) - still).abs().max() > 1e-2


@kernels
def test_paired_with_capsules_the_network_is_invariant(kernel, dtype):
    """Section 4.1: capsules give poses and agreement, the convolution is evaluated there; scores do not change."""
    capsule_layers = torch.nn.ModuleList(SpatialCapsules2d(SO2(), n, m) for n, m in ((1, 4), (4, 5), (5, 3))).to(dtype)
    convolutions = torch.nn.ModuleList(PoseConv2d(n, m, 2, 2, kernel=kernel) for n, m in ((1, 4), (4, 5), (5, 3)))
    convolutions.to(dtype)
    images = F.avg_pool2d(torch.rand(4, 1, 10, 10, dtype=dtype), 3, 1)

    def network(images):
        capsules, features = ImagePoses()(images), images
        for capsule_layer, convolution in zip(capsule_layers, convolutions, strict=True):
            capsules = capsule_layer(capsules)
            features = F.leaky_relu(convolution(features, capsules.poses), 0.2) * capsules.activations
        return capsules, features

    still, scores = network(images)
    for quarters in (1, 2, 3):
        moved, moved_scores = network(torch.rot90(images, quarters, (2, 3)))
        torch.testing.assert_close(moved_scores, scores, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(moved.activations, still.activations, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(moved.poses, turn_poses(SO2(), still.poses, quarters), rtol=1e-3, atol=1e-4)
        _, mirrored = network(images.flip(-1))
        assert not torch.allclose(mirrored, scores, atol=1e-4), "control: a mirror image is another image"


@kernels
def test_values_have_the_variance_of_an_ordinary_layer(kernel):
    """Initialisation: output and input of a wide layer are of one size, up to a factor."""
    layer = PoseConv2d(64, 64, 3, kernel=kernel)
    out = layer(torch.relu(torch.randn(8, 64, 6, 6)), SO2().random(8, 64, 4, 4))
    assert 0.3 < out.std() < 3


@kernels
def test_every_parameter_is_trained(kernel):
    layer = PoseConv2d(3, 4, kernel=kernel)
    layer(torch.randn(64, 3, 5, 5), SO2().random(64, 4, 3, 3)).square().sum().backward()
    trained = (layer.weight.grad != 0).flatten(0, 1).any(0)
    if isinstance(kernel, HarmonicKernel):
        assert not trained[1:, 0].any()  # the centre of the window has no angle
        trained[1:, 0] = True
    assert trained.all()
    assert (layer.bias.grad != 0).all()


def test_parameters_are_the_kernels_coefficients():
    assert PoseConv2d(3, 4, 2, kernel=SplineKernel(size=6)).weight.shape == (4, 3, 6, 6)
    assert PoseConv2d(3, 4, 2, kernel=HarmonicKernel(2)).weight.shape == (4, 3, 5, 1)
    assert PoseConv2d(3, 4, 3, kernel=HarmonicKernel(2)).weight.shape == (4, 3, 5, 3)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("features", "poses", "message"),
    [
        ((2, 2, 8, 8), (2, 4, 4, 4, 2), r"\(batch, 3, height, width\)"),
        ((2, 3, 7, 8), (2, 4, 4, 4, 2), "Nearest legal sizes: 6 and 8"),
        ((2, 3, 8, 8), (2, 4, 8, 8, 2), r"\(2, 4, 4, 4, 2\)"),
    ],
)
def test_bad_inputs_are_explained(features, poses, message):
    with pytest.raises(ValueError, match=message):
        PoseConv2d(3, 4, 2, 2)(torch.zeros(features), torch.zeros(poses))


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_choices_are_explained():
    for bad in ({"degree": 0}, {"degree": 4}, {"degree": 3, "size": 3}):
        with pytest.raises(ValueError, match="SplineKernel: `"):
            SplineKernel(**bad)
    with pytest.raises(ValueError, match="`order` must be at least 1"):
        HarmonicKernel(0)
    with pytest.raises(TypeError, match="`kernel` must be SplineKernel"):
        PoseConv2d(1, 1, kernel="spline")
    with pytest.raises(ValueError, match="`padding`"):
        PoseConv2d(1, 1, padding=-1)


def test_repr_shows_the_mathematical_signature():
    assert "3 -> 4, kernel_size=3, stride=1, padding=0, kernel=HarmonicKernel(order=2)" in repr(
        PoseConv2d(3, 4, kernel=HarmonicKernel())
    )


@kernels
def test_at_the_identity_it_is_an_ordinary_convolution(kernel, dtype, tolerance):
    """layer.upright(f) = layer(f, e), where e is the identity for every capsule; other poses give something else."""
    layer = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel).to(dtype)
    torch.nn.init.normal_(layer.bias)
    features = torch.randn(2, 3, 8, 6, dtype=dtype)
    expected = layer(features, SO2().identity(2, 4, 4, 3, dtype=dtype))
    torch.testing.assert_close(layer.upright(features), expected, rtol=1e-5, atol=10 * tolerance["atol"])
    assert not torch.allclose(layer(features, SO2().random(2, 4, 4, 3, dtype=dtype)), expected, atol=1e-2)


@kernels
def test_activations_weight_the_output(kernel, dtype, tolerance):
    """Also in windows where none is active."""
    layer = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel).to(dtype)
    torch.nn.init.normal_(layer.bias)
    features, poses = torch.randn(2, 3, 8, 6, dtype=dtype), SO2().random(2, 4, 4, 3, dtype=dtype)
    activations = torch.rand(2, 4, 4, 3, dtype=dtype)
    activations[:, :, 1] = 0
    expected = layer(features, poses) * activations
    torch.testing.assert_close(layer(features, poses, activations), expected, rtol=1e-5, atol=10 * tolerance["atol"])


@kernels
def test_normalised_outputs_have_unit_variance_in_training(kernel):
    layer = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel, norm=True)
    features, poses = torch.randn(8, 3, 12, 12), SO2().random(8, 4, 6, 6)
    for out in (layer(features, poses), layer.upright(features)):
        torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(4), atol=1e-5, rtol=0)
        torch.testing.assert_close(out.var((0, 2, 3), correction=0), torch.ones(4), atol=1e-3, rtol=0)


@kernels
def test_only_active_windows_are_normalised(kernel):
    layer = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel, norm=True)
    features, poses = torch.randn(8, 3, 12, 12), SO2().random(8, 4, 6, 6)
    activations = (torch.rand(8, 1, 6, 6) < 0.5).float().expand(-1, 4, -1, -1)
    out = layer(features, poses, activations).movedim(1, -1)[activations[:, 0] != 0]
    torch.testing.assert_close(out.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.var(0, correction=0), torch.ones(4), atol=1e-3, rtol=0)


@kernels
def test_in_eval_mode_the_normalisation_is_part_of_kernel_and_bias(kernel, dtype, tolerance):
    """As if the output of the layer without it were normalised; activations weight what comes after it."""
    layer = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel, norm=True).to(dtype).eval()
    plain = PoseConv2d(3, 4, 4, 2, 1, kernel=kernel).to(dtype)
    plain.weight = layer.weight
    for value in (layer.norm.weight, layer.norm.bias, layer.norm.running_mean, layer.norm.running_var):
        torch.nn.init.uniform_(value, 0.5, 2)
    features, poses = torch.randn(2, 3, 12, 12, dtype=dtype), SO2().random(2, 4, 6, 6, dtype=dtype)
    activations = torch.rand(2, 4, 6, 6, dtype=dtype)
    close = {"rtol": 1e-5, "atol": 10 * tolerance["atol"]}
    expected = layer.norm(plain(features, poses))
    torch.testing.assert_close(layer(features, poses), expected, **close)
    torch.testing.assert_close(layer(features, poses, activations), expected * activations, **close)
    torch.testing.assert_close(layer.upright(features), layer.norm(plain.upright(features)), **close)


def test_a_normalised_layer_has_no_second_bias():
    layer = PoseConv2d(3, 4, norm=True)
    assert layer.bias is None
    assert "norm=True" in repr(layer)
    assert "norm" not in repr(PoseConv2d(3, 4))
