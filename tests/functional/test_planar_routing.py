import pytest
import torch

from equicaps.functional import (
    Linear,
    Sigmoid,
    directions,
    mean_pose,
    planar_route,
    planar_routing,
    planar_sweep,
    route,
)
from equicaps.functional.planar_routing import planar_mean_pose
from equicaps.groups import SO2

TURNED = torch.rot90(torch.arange(4).view(2, 2), 1, (0, 1)).flatten().tolist()
"""Where the positions of a 2x2 block, in reading order, come from when it is rotated by 90 degrees."""


def sample(dtype, *, emitted=2, windows=9, defined=True):
    """Features of aligned positions, weights, poses, activations, α and β; all of them leaves."""
    features = torch.randn(6, 4, windows, dtype=dtype)
    weight = torch.randn(emitted, 5, 3, 6, dtype=dtype)
    poses = SO2().random(3, 4, windows, dtype=dtype).movedim(-1, 0).contiguous()
    activations = torch.rand(3, 4, windows, dtype=dtype) + 0.1
    if not defined:
        poses[:, 1], activations[1] = 0, 0  # an undefined capsule
        activations[2, 0] = 0  # a silent one with a pose
        activations[2, 1] *= 2e-3  # one that is almost silent
        poses[:, 2] *= 0.8  # poses that fade
        activations[..., 0] = 0  # a window without any activity
    numbers = (torch.tensor(3.0, dtype=dtype), torch.tensor(1.5, dtype=dtype))
    return [tensor.requires_grad_() for tensor in (features, weight, poses, activations, *numbers)]


def swiftly(features, weight, poses, activations, alpha, beta, **options):
    return planar_route(features, weight, poses, activations, sigma=Sigmoid(alpha, beta), **options)


def plainly(features, weight, poses, activations, alpha, beta, **options):
    """The same by compose and route."""
    raw = torch.einsum("fkw,emcf->wmcke", features, weight)
    t = directions(raw) if len(weight) == 2 else SO2().exp(raw)
    votes = SO2().compose(poses.permute(3, 1, 2, 0).unsqueeze(1), t).flatten(2, 3)
    inputs = activations.permute(2, 0, 1).flatten(1)
    routing = route(SO2(), votes, inputs, sigma=Sigmoid(alpha, beta), **options)
    return routing.poses.permute(2, 1, 0), routing.activations.T


@pytest.fixture(params=(1, 60, 2**18), ids=("tiny pieces", "small pieces", "one piece"))
def piece(request, monkeypatch):
    monkeypatch.setattr(planar_sweep, "_PIECE", request.param)
    monkeypatch.setattr(planar_sweep, "_WINDOWS", 4)


@pytest.mark.usefixtures("piece")
@pytest.mark.parametrize("defined", [True, False], ids=["defined", "undefined"])
@pytest.mark.parametrize("agreement", ["mean", "weighted"])
@pytest.mark.parametrize("iterations", [0, 1, 2, 4])
@pytest.mark.parametrize("emitted", [1, 2], ids=["angles", "directions"])
def test_equals_route(emitted, iterations, agreement, defined, dtype, tolerance):
    """Values and all gradients, whatever the pieces."""
    arguments = sample(dtype, emitted=emitted, defined=defined)
    options = {"iterations": iterations, "agreement": agreement}
    actual, expected = swiftly(*arguments, **options), plainly(*arguments, **options)
    heads = [torch.randn_like(tensor) for tensor in actual]
    if not defined:
        for head in heads:
            head[..., 0] = 0  # in a window without evidence, gradients of about 1e12 cannot be compared
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)
    gradients = (torch.autograd.grad(outputs, arguments, heads, allow_unused=True) for outputs in (actual, expected))
    loose = {"rtol": 2e-3, "atol": 2e-3} if dtype == torch.float32 else {"rtol": 1e-7, "atol": 1e-7}
    for leaf, one, other in zip(arguments, *gradients, strict=True):
        compared = leaf != 0 if leaf is arguments[3] else torch.ones_like(leaf, dtype=torch.bool)  # |a| has a kink at 0
        other = torch.zeros_like(one) if other is None else other
        torch.testing.assert_close(one[compared], other[compared], **loose)


def test_that_comparison_rejects_other_options():
    """Control: with other options the two differ by far more than the tolerance."""
    arguments = sample(torch.float64)
    routed = swiftly(*arguments)
    for other in ({"iterations": 1}, {"agreement": "weighted"}):
        poses, activations = plainly(*arguments, **other)
        assert max((routed.poses - poses).abs().max(), (routed.activations - activations).abs().max()) > 1e-4


@pytest.mark.usefixtures("piece")
def test_gradients_are_correct_in_random_directions():
    assert torch.autograd.gradcheck(routed, sample(torch.float64, windows=5), atol=1e-6, fast_mode=True)


def test_gradients_are_correct():
    assert torch.autograd.gradcheck(routed, sample(torch.float64, windows=1), atol=1e-6)


def routed(*tensors):
    return tuple(swiftly(*tensors))


def test_no_windows_are_no_work(dtype):
    arguments = sample(dtype, windows=0)
    routing = swiftly(*arguments)
    assert routing.poses.shape == (2, 5, 0)
    assert routing.activations.shape == (5, 0)


def test_directions_are_unit_vectors_and_zero_stays_zero(dtype, shape):
    raw = torch.randn(*shape, 2, dtype=dtype)
    assert SO2().contains(directions(raw)).all()
    zero = torch.zeros(*shape, 2, dtype=dtype, requires_grad=True)
    directions(zero).sum().backward()
    assert zero.grad.isfinite().all()
    assert (directions(zero) == 0).all()


def test_gradients_follow_route_where_there_is_hardly_any_evidence():
    """Below the floor of the total weight, which no longer moves with it."""
    arguments = sample(torch.float64)
    with torch.no_grad():
        arguments[3].mul_(1e-11)
    gradients = []
    for outputs in (swiftly(*arguments), plainly(*arguments)):
        gradients.append(torch.autograd.grad(outputs[0].sum(), arguments[3])[0])
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=0)


def turned(poses):
    """Unit vectors (2, ...) by +90 degrees."""
    return torch.stack((-poses[1], poses[0]))


@pytest.mark.parametrize("positions", [4, 9])
@pytest.mark.parametrize("together", [True, False])
def test_the_planar_mean_pose_is_the_mean_pose(together, positions, dtype, tolerance):
    """Values and gradients, also of poses that fade, and where no pose is defined."""
    poses = SO2().random(3, positions, 8, dtype=dtype).movedim(-1, 0).contiguous()
    poses[:, 1] *= 0.8
    poses[:, 2, 0] = 0
    poses[..., 0] = 0
    poses.requires_grad_()
    inputs = poses.permute(3, 1, 2, 0)
    actual = planar_mean_pose(poses, together=together).movedim(-2, 0)
    expected = mean_pose(SO2(), inputs.flatten(1, 2) if together else inputs)
    torch.testing.assert_close(actual, expected, **tolerance)
    head = torch.randn_like(actual)
    head[0] = 0  # without evidence, gradients of about 1e9 cannot be compared
    gradients = (torch.autograd.grad(means, poses, head)[0] for means in (actual, expected))
    torch.testing.assert_close(*gradients, **{name: 20 * value for name, value in tolerance.items()})


def test_turned_blocks_have_turned_poses_to_the_bit(monkeypatch):
    """Each block rotated, and in another place.

    With one feature, its product with the weights is rounded once; 256 windows fill the vector units, at whose edge σ
    and sums over capsules are rounded differently.
    """
    features, weight, poses, activations, *numbers = (tensor.detach() for tensor in sample(torch.float32, windows=256))
    features, weight, order = features[:1], weight[..., :1], torch.randperm(256)

    def answers(features, poses, activations):
        routing = swiftly(features, weight, poses, activations, *numbers)
        return planar_mean_pose(poses).T, *routing

    def turn(positions):
        return positions[..., TURNED, :][..., order]

    def same():
        mean, routed, agreement = answers(features, poses, activations)
        found = answers(turn(features), turn(turned(poses)), turn(activations))
        expected = (turned(mean)[..., order], turned(routed)[..., order], agreement[..., order])
        return [torch.equal(one, other) for one, other in zip(found, expected, strict=True)]

    assert same() == [True, True, True]
    for module in (planar_routing, planar_sweep):
        monkeypatch.setattr(module, "over_window", lambda values: values.sum(-2))
    assert same() == [False, False, False]  # control


@pytest.mark.usefixtures("without_shape_checks")
def test_a_sigma_of_another_form_is_refused():
    features, weight, poses, activations, *_ = sample(torch.float32)
    with pytest.raises(ValueError, match="closed form 'sigmoid'"):
        planar_route(features, weight, poses, activations, sigma=Linear())
