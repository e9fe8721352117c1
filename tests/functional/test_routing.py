import math

import numpy as np
import oracles
import pytest
import torch
from oracles import ALL_GROUPS, CLOSED_GROUPS

from equicaps.functional import Linear, Sigmoid, Softmax, route
from equicaps.groups import SE2, SO2, SO3, Group, Scale, Translation

SIGMAS = {
    "sigmoid": (Sigmoid(3.0, 1.5), lambda x: 1 / (1 + math.exp(-(3.0 * x + 1.5)))),
    "linear": (Linear(), lambda x: max(1 + x, 0)),
}


def sample(group: Group, shape: tuple[int, ...], dtype: torch.dtype, m: int = 3, n: int = 6, spread: float = 0.15):
    """Votes that neither agree nor cancel, with activations."""
    scatter = group.exp(spread * torch.randn(*shape, m, n, group.algebra_dim, dtype=dtype))
    votes = group.compose(group.random(*shape, m, 1, dtype=dtype), scatter)
    return votes, torch.rand(*shape, n, dtype=dtype) + 0.1


@pytest.mark.parametrize("iterations", [0, 1, 2, 5])
@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("group", [SO2(), Translation(2)], ids=repr)
def test_route_equals_algorithm_1_as_plain_loops(group, sigma, iterations, dtype, tolerance):
    """Against the paper's lines written as Python loops, votes included."""
    ours, theirs = SIGMAS[sigma]
    poses, activations = (
        group.exp(0.3 * torch.randn(6, group.algebra_dim, dtype=dtype)),
        torch.rand(6, dtype=dtype) + 0.1,
    )
    transforms = group.exp(0.3 * torch.randn(3, 6, group.algebra_dim, dtype=dtype))
    routing = route(group, group.compose(poses, transforms), activations, iterations=iterations, sigma=ours)
    rotation = isinstance(group, SO2)
    mean, distance = (
        (oracles.so2_mean, oracles.so2_distance)
        if rotation
        else (oracles.translation_mean, oracles.translation_distance)
    )

    def compose(p, t):
        return [p[0] * t[0] - p[1] * t[1], p[0] * t[1] + p[1] * t[0]] if rotation else [p[0] + t[0], p[1] + t[1]]

    arguments = (poses.tolist(), transforms.tolist(), activations.tolist(), compose, iterations)
    expected = oracles.algorithm_1(mean, distance, theirs, *arguments)
    for actual, plain in zip(routing, expected, strict=True):
        torch.testing.assert_close(actual.double(), torch.from_numpy(plain), **tolerance)


def test_the_oracle_tells_iterations_apart():
    """Control: the loops above do depend on what is compared."""
    group = SO2()
    votes, activations = sample(group, (), torch.float64, spread=0.8)
    once, twice = (route(group, votes, activations, iterations=k, sigma=Linear()) for k in (1, 2))
    assert (once.poses - twice.poses).abs().max() > 1e-3
    assert (once.weights - twice.weights).abs().max() > 1e-3


@pytest.mark.parametrize("agreement", ["mean", "weighted"])
@pytest.mark.parametrize("sigma", [Sigmoid(), Linear(), Softmax()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("group", CLOSED_GROUPS, ids=repr)
def test_poses_move_and_activations_stay(group, sigma, agreement, shape, dtype, tolerance):
    """Theorems 1 and 2 for the function itself, in every variant."""
    votes, activations = sample(group, shape, dtype)
    g = group.random(*shape, 1, 1, dtype=dtype)
    still = route(group, votes, activations, sigma=sigma, agreement=agreement)
    moved = route(group, group.compose(g, votes), activations, sigma=sigma, agreement=agreement)
    torch.testing.assert_close(moved.poses, group.compose(g.squeeze(-2), still.poses), **tolerance)
    torch.testing.assert_close(moved.activations, still.activations, **tolerance)
    assert not torch.allclose(moved.poses, still.poses, **tolerance)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_weights_are_invariant(group, shape, dtype, tolerance):
    """The induction step of the proof: w(g ∘ V) = w(V); and they are not all alike."""
    votes, activations = sample(group, shape, dtype, spread=0.4)
    g = group.random(*shape, 1, 1, dtype=dtype)
    still, moved = route(group, votes, activations), route(group, group.compose(g, votes), activations)
    torch.testing.assert_close(moved.weights, still.weights, **tolerance)
    assert (still.weights / activations.unsqueeze(-2)).std() > 1e-3


def test_zero_iterations_is_the_plain_mean(shape, dtype):
    """No routing: poses are M(v, a) and the weights are a."""
    group = SO3()
    votes, activations = sample(group, shape, dtype)
    routing = route(group, votes, activations, iterations=0)
    torch.testing.assert_close(routing.weights, activations.unsqueeze(-2).expand(*shape, 3, 6))
    torch.testing.assert_close(routing.poses, group.mean(votes, routing.weights))


def test_softmax_weights_sum_to_one_over_outputs(shape, dtype, tolerance):
    """Outputs share each input: Σ_j w_ij = a_i, and the activations of the outputs compete, too."""
    group = SO2()
    votes, activations = sample(group, shape, dtype)
    routing = route(group, votes, activations, sigma=Softmax(5.0))
    torch.testing.assert_close(routing.weights.sum(-2), activations, **tolerance)
    torch.testing.assert_close(routing.activations.sum(-1), torch.ones(shape, dtype=dtype), **tolerance)


def test_routing_listens_to_the_majority(dtype):
    """Four votes agree, one does not: its weight falls, and the pose comes closer to the four than without routing."""
    group = SO2()
    angles = torch.tensor([0.0, 0.1, -0.1, 0.05, 2.5], dtype=dtype)
    votes, activations = group.exp(angles[:, None])[None], torch.ones(5, dtype=dtype)
    plain, routed = (route(group, votes, activations, iterations=k, sigma=Sigmoid(10.0, 4.0)) for k in (0, 3))
    assert routed.weights[0, 4] < 0.2 * routed.weights[0, :4].min()
    assert group.log(routed.poses).abs() < 0.5 * group.log(plain.poses).abs()


def test_activations_are_the_mean_of_distances_not_of_weights(dtype):
    """σ of the mean, not the mean of σ."""
    group = SO2()
    votes, activations = sample(group, (), dtype, spread=0.8)
    routing = route(group, votes, activations, sigma=Sigmoid(10.0, 2.0))
    distances = group.distance(routing.poses.unsqueeze(-2), votes)
    expected = torch.sigmoid(2.0 - 10.0 * distances.mean(-1))
    torch.testing.assert_close(routing.activations, expected)
    assert (torch.sigmoid(2.0 - 10.0 * distances).mean(-1) - expected).abs().max() > 1e-3


def test_weighted_agreement_hardly_hears_a_faint_vote(dtype):
    """A faint stray vote lowers the paper's â as much as a loud one, and not the weighted one."""
    group = SO2()
    votes = group.exp(torch.tensor([[0.0], [0.1], [2.0]], dtype=dtype))[None]
    faint = torch.tensor([1.0, 1.0, 1e-2], dtype=dtype)
    for agreement, changes in (("mean", True), ("weighted", False)):
        with_stray = route(group, votes, faint, agreement=agreement).activations
        without = route(group, votes[:, :2], faint[:2], agreement=agreement).activations
        assert ((with_stray - without).abs() > 0.01).item() == changes


@pytest.mark.parametrize("agreement", ["mean", "weighted"])
@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_a_silent_input_casts_no_vote(group, agreement, dtype, tolerance):
    """With a_i = 0 the pose p_i is undefined (and does not move): the result is the one without input i."""
    votes, activations = sample(group, (), dtype)
    activations[2] = 0
    rest = [0, 1, 3, 4, 5]
    votes[:, 2] = 0
    silent = route(group, votes, activations, agreement=agreement)
    absent = route(group, votes[:, rest], activations[rest], agreement=agreement)
    torch.testing.assert_close(silent.poses, absent.poses, **tolerance)
    torch.testing.assert_close(silent.activations, absent.activations, **tolerance)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_undefined_inputs_give_zero_activation(group, dtype):
    """Section 6.1: capsules with only zero inputs have zero agreement, an undefined pose and finite gradients."""
    votes = group.random(3, 6, dtype=dtype).requires_grad_()
    activations = torch.zeros(6, dtype=dtype, requires_grad=True)
    routing = route(group, votes, activations)
    (routing.poses.sum() + routing.activations.sum()).backward()
    assert (routing.poses == 0).all()
    assert (routing.activations == 0).all()
    assert votes.grad.isfinite().all()
    assert activations.grad.isfinite().all()
    assert (route(group, votes, torch.ones(6, dtype=dtype)).activations > 0).all()


def test_votes_that_cancel_give_the_undefined_pose(dtype):
    """Opposite votes on SO(2): zero vector, zero activation, finite gradients."""
    votes = SO2().exp(torch.tensor([[0.0], [math.pi]], dtype=dtype))[None].requires_grad_()
    routing = route(SO2(), votes, torch.ones(2, dtype=dtype))
    routing.activations.sum().backward()
    assert routing.poses.norm() < 1e-3
    assert routing.activations.item() < 1e-6
    assert votes.grad.isfinite().all()


@pytest.mark.parametrize("sigma", [Sigmoid(), Linear()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("corners", [2, 3, 4, 6])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-3, 1e-2, 0.1])
def test_routing_does_not_blow_up_the_noise_of_votes_that_nearly_cancel(corners, noise, sigma):
    """Regular polygons, rotated and disturbed: Theorems 1 and 2 within 1e-4 in float32, where the pose is defined."""
    group = SO2()
    angles = (
        torch.arange(corners) * (2 * math.pi / corners) + 6 * torch.rand(500, 1) + noise * torch.randn(500, corners)
    )
    votes, activations = group.exp(angles.unsqueeze(-1)).unsqueeze(-3), torch.ones(500, corners)
    g = group.random(500, 1, 1)
    still, moved = (route(group, v, activations, sigma=sigma) for v in (votes, group.compose(g, votes)))
    defined = (group.presence(still.poses) > 0.5).unsqueeze(-1)
    error = (moved.poses - group.compose(g.squeeze(-2), still.poses)) * defined
    assert error.abs().max() < 1e-4
    assert (moved.activations - still.activations).abs().max() < 1e-4
    if noise < 1e-3:
        assert not defined.any()


def test_turns_of_space_that_nearly_tie_fade():
    """Two rotations about 180 degrees apart: within 1e-2 where the pose is defined; activations within 1e-4."""
    group = SO3()
    axes = torch.nn.functional.normalize(torch.randn(500, 3), dim=-1)
    for noise in (0.0, 1e-3, 0.03, 0.2):
        half = torch.stack((torch.zeros_like(axes), axes * math.pi), dim=1)
        votes = group.compose(group.exp(half), group.exp(noise * torch.randn(500, 2, 3))).unsqueeze(1)
        g = group.random(500, 1, 1)
        still, moved = (route(group, v, torch.ones(500, 2)) for v in (votes, group.compose(g, votes)))
        defined = (group.presence(still.poses) > 0.5).unsqueeze(-1)
        assert ((moved.poses - group.compose(g.squeeze(-2), still.poses)) * defined).abs().max() < 1e-2
        assert (moved.activations - still.activations).abs().max() < 1e-4


def test_far_translations_do_not_break_a_fading_rotation():
    """SE(2), votes nearly cancelling in rotation, moved far away: poses follow in float64 as exactly as anywhere."""
    group = SE2()
    turns = SO2().exp(torch.tensor([[0.0], [2.0944], [4.1906]], dtype=torch.float64))
    votes = torch.cat((turns, torch.randn(3, 2, dtype=torch.float64)), dim=-1).unsqueeze(0)
    g = torch.tensor([0.6, 0.8, 50.0, 20.0], dtype=torch.float64)
    ones = torch.ones(3, dtype=torch.float64)
    still, moved = route(group, votes, ones), route(group, group.compose(g, votes), ones)
    torch.testing.assert_close(moved.poses, group.compose(g, still.poses), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(moved.activations, still.activations, rtol=1e-9, atol=1e-9)


def test_gradient_with_respect_to_a_faint_activation_is_moderate():
    votes, activations = sample(SO2(), (), torch.float64)
    activations[0] = 1e-12
    activations.requires_grad_()
    route(SO2(), votes, activations).activations.sum().backward()
    assert activations.grad.abs().max() < 1e3


@pytest.mark.parametrize("group", [SO2(), SO3(), Translation(2), SE2()], ids=repr)
def test_autocast_does_not_reach_the_routing(group):
    votes, activations = sample(group, (), torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.eye(2) @ torch.eye(2)).dtype == torch.bfloat16, "the control: autocast is on"
        found = route(group, votes, activations), route(group, votes=votes, activations=activations)
    for routing in found:
        torch.testing.assert_close(routing.poses, route(group, votes, activations).poses, rtol=0, atol=0)


@pytest.mark.parametrize("sigma", [Sigmoid(), Linear(), Softmax()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("group", [SO2(), SO3(), SE2(), Scale()], ids=repr)
def test_gradients_are_correct(group, sigma):
    votes, activations = sample(group, (), torch.float64, m=2, n=3)
    inputs = (votes.requires_grad_(), activations.requires_grad_())
    assert torch.autograd.gradcheck(lambda v, a: route(group, v, a, sigma=sigma)[:2], inputs, atol=1e-6)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
def test_equal_votes_have_finite_gradients_and_full_agreement(group, dtype):
    votes = group.random(dtype=dtype).expand(2, 5, -1).clone().requires_grad_()
    routing = route(group, votes, torch.ones(5, dtype=dtype))
    (routing.poses.sum() + routing.activations.sum()).backward()
    best = Sigmoid()(torch.zeros(1, 1, dtype=dtype))
    torch.testing.assert_close(routing.activations, best.expand(2, 1)[:, 0], rtol=1e-4, atol=1e-4)
    assert votes.grad.isfinite().all()


def test_batches_are_independent(dtype):
    """Routing a batch is routing its entries one by one."""
    votes, activations = sample(SO3(), (2, 3), dtype)
    whole = route(SO3(), votes, activations)
    single = route(SO3(), votes[1, 2], activations[1, 2])
    torch.testing.assert_close(whole.poses[1, 2], single.poses)
    assert np.prod(whole.activations.shape) == 18


@pytest.mark.parametrize("sigma", [Sigmoid(), Linear()], ids=lambda s: type(s).__name__)
def test_a_pose_that_fades_does_not_recover_in_the_next_iteration(sigma):
    """|p̂| after an iteration is at most the presence of p̂ before it, although the new weights favour that direction."""
    group, noise = SO2(), torch.logspace(-4, -1, 400)[:, None]
    angles = torch.arange(3) * (2 * math.pi / 3) + noise * torch.randn(400, 3)
    votes, ones = group.exp(angles.unsqueeze(-1)).unsqueeze(-3), torch.ones(400, 3)
    before, after = (route(group, votes, ones, iterations=r, sigma=sigma) for r in (0, 1))
    presence = group.presence(before.poses)
    assert ((presence > 0.05) & (presence < 0.5)).sum() > 20  # guard: many are faint
    assert (after.poses.norm(dim=-1) <= presence + 1e-5).all()
    assert (
        group.mean(votes, after.weights).norm(dim=-1) > presence + 0.1
    ).any()  # control: without fading, some recover
