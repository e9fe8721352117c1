import pytest
import torch
from turning import scattered, turn_capsules, turn_grid

from equicaps.functional import Capsules, Linear, Sigmoid, Softmax, window_routing
from equicaps.groups import GL, SE2, SO2, SO3, Product, Scale, Translation
from equicaps.nn import ImagePoses, SpatialCapsules2d, TransformLinear, TransformMLP

GEOMETRIES = [(2, 2), (3, 1), (3, 2), (2, 1)]
geometry = pytest.mark.parametrize(("kernel_size", "stride"), GEOMETRIES)
generators = pytest.mark.parametrize("kernel", [TransformMLP(8), TransformLinear(8)], ids=["mlp", "linear"])


class Sharp(Sigmoid):
    """A user's own σ, of which no fast implementation knows."""

    def __call__(self, x):
        return super().__call__(x) ** 4


sigmas = pytest.mark.parametrize("sigma", [Sigmoid(), Linear(), Softmax(), Sharp()], ids=lambda s: type(s).__name__)


def sample(group, kernel_size, stride, dtype, capsules=3):
    """A grid that is not square, with empty places."""
    height, width = kernel_size + 3 * stride, kernel_size + 2 * stride
    poses = scattered(group, 2, capsules, height, width, dtype=dtype)
    activations = torch.rand(2, capsules, height, width, dtype=dtype) + 0.1
    poses[0, 0, 0, 0], activations[0, 0, 0, 0] = 0, 0
    return Capsules(poses, activations)


@pytest.mark.parametrize("quarters", [1, 2, 3])
@geometry
@generators
@pytest.mark.parametrize("group", [SO2(), SE2(), GL(2)], ids=repr)
def test_poses_turn_and_activations_stay(group, kernel, kernel_size, stride, quarters, dtype, tolerance):
    """Theorems 1 and 2 with positions: layer(g P) = g layer(P), a only moves with the grid; for every parameter."""
    layer = SpatialCapsules2d(group, 3, 4, kernel_size, stride, kernel=kernel).to(dtype)
    capsules = sample(group, kernel_size, stride, dtype)
    still = layer(capsules)
    moved = layer(turn_capsules(group, capsules, quarters))
    expected = turn_capsules(group, still, quarters)
    loose = {name: 10 * value for name, value in tolerance.items()}
    torch.testing.assert_close(moved.poses, expected.poses, **loose)
    torch.testing.assert_close(moved.activations, expected.activations, **loose)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(moved.poses, turn_grid(still.poses, quarters), **loose)


@geometry
def test_without_alignment_that_comparison_fails(kernel_size, stride, dtype, monkeypatch):
    """Control, Figure 2 (b): the same layer with transformations at fixed positions is not equivariant."""
    layer = SpatialCapsules2d(SO2(), 3, 4, kernel_size, stride).to(dtype)
    capsules = sample(SO2(), kernel_size, stride, dtype)
    monkeypatch.setattr(
        window_routing, "align", lambda group, mean, positions: positions.expand(*mean.shape[:-1], -1, -1)
    )
    moved, still = layer(turn_capsules(SO2(), capsules, 1)), layer(capsules)
    assert (moved.poses - turn_capsules(SO2(), still, 1).poses).abs().max() > 1e-2
    assert (moved.activations - turn_grid(still.activations, 1)).abs().max() > 1e-3


@pytest.mark.parametrize("agreement", ["mean", "weighted"])
@sigmas
@generators
def test_every_variant_equals_plain_route(kernel, sigma, agreement, dtype, tolerance):
    """Whatever the implementation, forward returns what route makes of the layer's votes."""
    layer = SpatialCapsules2d(SO2(), 3, 4, 3, 1, kernel=kernel, sigma=sigma, agreement=agreement).to(dtype)
    capsules = sample(SO2(), 3, 1, dtype)
    actual, expected = layer(capsules), layer.routing(capsules)
    torch.testing.assert_close(actual.poses, expected.poses.movedim(3, 1), **tolerance)
    torch.testing.assert_close(actual.activations, expected.activations.movedim(3, 1), **tolerance)


def test_votes_equal_plain_loops(dtype, tolerance):
    """v = p ∘ t(p̄⁻¹ x_k), window by window, for a group that does not commute."""
    group = SE2()
    layer = SpatialCapsules2d(group, 2, 3, 2, 2).to(dtype)
    poses = scattered(group, 1, 2, 4, 2, dtype=dtype)
    votes = layer.votes(poses)
    offsets = [(-0.5, 0.5), (0.5, 0.5), (-0.5, -0.5), (0.5, -0.5)]
    for row in range(2):
        block = poses[0, :, 2 * row : 2 * row + 2].reshape(2, 4, -1)
        mean = group.mean(block.reshape(8, -1), torch.ones(8, dtype=dtype))
        for k, offset in enumerate(offsets):
            z = group.act(group.inverse(mean), torch.tensor(offset, dtype=dtype))
            t = layer.generator(z)
            for c in range(2):
                for m in range(3):
                    expected = group.compose(block[c, k], t[m, c])
                    torch.testing.assert_close(votes[0, row, 0, m, 4 * c + k], expected, **tolerance)


def test_transformations_are_shared_over_positions(dtype, tolerance):
    """A shift of the input by the stride is a shift of the output."""
    layer = SpatialCapsules2d(SO2(), 3, 4).to(dtype)
    capsules = Capsules(scattered(SO2(), 1, 3, 8, 8, dtype=dtype), torch.rand(1, 3, 8, 8, dtype=dtype) + 0.1)
    shifted = layer(Capsules(capsules.poses.roll(2, 2), capsules.activations.roll(2, 2)))
    still = layer(capsules)
    torch.testing.assert_close(shifted.poses, still.poses.roll(1, 2), **tolerance)
    torch.testing.assert_close(shifted.activations, still.activations.roll(1, 2), **tolerance)
    assert not torch.allclose(shifted.poses, still.poses, **tolerance)


@sigmas
def test_constant_images_end_undefined_with_finite_gradients(sigma, dtype):
    """Section 6.1: no gradient, no pose, no agreement, all the way; and half empty images have finite gradients."""
    layers = [SpatialCapsules2d(SO2(), n, m, sigma=sigma).to(dtype) for n, m in ((1, 4), (4, 3))]
    images = torch.full((2, 1, 8, 8), 0.3, dtype=dtype)
    images[1, 0, 2:5, 3:6] = torch.rand(3, 3, dtype=dtype)
    capsules = ImagePoses()(images.requires_grad_())
    for layer in layers:
        capsules = layer(capsules)
    assert (capsules.poses[0] == 0).all()
    assert (capsules.activations[0] == 0).all()
    assert (capsules.activations[1] > 0).any()
    (capsules.poses.sum() + capsules.activations.sum()).backward()
    assert all(p.grad.isfinite().all() for layer in layers for p in layer.parameters())
    assert images.grad.isfinite().all()


def test_one_step_of_training_changes_every_parameter():
    layer = SpatialCapsules2d(SO2(), 3, 4)
    capsules = sample(SO2(), 2, 2, torch.float32)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        out = layer(capsules)
        loss = (1 - out.activations[:, 0]).mean() + (out.poses - torch.tensor([1.0, 0.0])).square().mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_poses_are_planes_in_memory():
    """The next layer unbinds them without copying."""
    poses = SpatialCapsules2d(SO2(), 3, 4)(sample(SO2(), 2, 2, torch.float32)).poses
    assert all(plane.stride(-1) == 1 for plane in poses.unbind(-1))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("group", [SO3(), Scale(), Translation(3), Product(SO2(), Translation(2)), "SO2"], ids=repr)
def test_groups_that_do_not_act_on_the_plane_are_refused(group):
    with pytest.raises(ValueError, match="must act on the plane"):
        SpatialCapsules2d(group, 1, 1)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 7, 8, 2), "Nearest legal sizes: 6 and 8"),
        ((2, 4, 8, 8, 2), r"\(batch, 3, height, width, 2\)"),
        ((3, 8, 8, 2), r"\(batch, 3, height, width, 2\)"),
    ],
)
def test_bad_inputs_are_explained(shape, message):
    with pytest.raises(ValueError, match=message):
        SpatialCapsules2d(SO2(), 3, 4)(Capsules(torch.zeros(shape), torch.zeros(shape[:-1])))


@pytest.mark.usefixtures("without_shape_checks")
def test_activations_of_another_grid_are_explained():
    with pytest.raises(ValueError, match="one for each pose"):
        SpatialCapsules2d(SO2(), 3, 4)(Capsules(torch.zeros(1, 3, 4, 4, 2), torch.zeros(1, 3, 4, 2)))


@pytest.mark.usefixtures("without_shape_checks")
def test_a_kernel_that_is_none_is_explained():
    with pytest.raises(TypeError, match="`kernel` must be TransformMLP"):
        SpatialCapsules2d(SO2(), 3, 4, kernel=None)


def test_repr_shows_the_mathematical_signature():
    assert "3 -> 4 capsules on SO(2), kernel_size=2, stride=2" in repr(SpatialCapsules2d(SO2(), 3, 4))


def test_calibration_spreads_activations_around_one_half(dtype):
    """α = 1.5 / std δ̄, β = α mean δ̄; before it, the activations of a fresh layer hardly differ."""
    layer = SpatialCapsules2d(SO2(), 6, 8, kernel=TransformMLP(spread=1.5)).to(dtype)
    capsules = Capsules(SO2().random(8, 6, 8, 8, dtype=dtype), torch.rand(8, 6, 8, 8, dtype=dtype))
    fresh = layer(capsules)
    before = fresh.activations[SO2().presence(fresh.poses) == 1]
    calibrated = layer.calibrate(capsules)
    assert torch.equal(calibrated.activations, layer(capsules).activations)
    after = calibrated.activations[SO2().presence(calibrated.poses) == 1]
    assert 0.4 < after.mean() < 0.6
    assert after.std() > 0.2
    assert before.std() < 0.1
    assert all(parameter.requires_grad and parameter.grad_fn is None for parameter in layer.parameters())


@pytest.mark.parametrize("sigma", [Linear(), Softmax()])
def test_other_sigmas_need_no_calibration(sigma):
    layer = SpatialCapsules2d(SO2(), 2, 3, sigma=sigma)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    layer.calibrate(Capsules(SO2().random(1, 2, 4, 4), torch.rand(1, 2, 4, 4)))
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())


def test_calibration_without_evidence_changes_nothing():
    """Blank images have no defined pose."""
    layer = SpatialCapsules2d(SO2(), 2, 3)
    layer.calibrate(Capsules(torch.zeros(1, 2, 4, 4, 2), torch.zeros(1, 2, 4, 4)))
    assert [layer.sigma.alpha.item(), layer.sigma.beta.item()] == [2, 2]
