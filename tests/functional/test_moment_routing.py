import math

import pytest
import torch

from equicaps.functional import Linear, Sigmoid, moment_route, route
from equicaps.groups import SO2

agreements = pytest.mark.parametrize("agreement", ["mean", "weighted"])
rounds = pytest.mark.parametrize("iterations", [0, 1, 2, 7])


def sample(shape, dtype, m=3, n=6):
    """Votes in all directions, some undefined, some silent, some almost."""
    votes, activations = SO2().random(*shape, m, n, dtype=dtype), torch.rand(*shape, n, dtype=dtype) + 0.1
    votes[..., 1, :], activations[..., 1] = 0, 0
    activations[..., 2] = 0
    activations[..., 3] *= 2e-3
    votes[..., 4, :] *= 0.7
    return votes.requires_grad_(), activations.requires_grad_()


@agreements
@rounds
def test_equals_route_with_linear_sigma(iterations, agreement, shape, dtype, tolerance):
    """Poses, activations and gradients, whatever the number of iterations."""
    inputs = sample(shape, dtype)
    options = {"iterations": iterations, "agreement": agreement}
    actual = moment_route(*inputs, **options)
    expected = route(SO2(), *inputs, sigma=Linear(), **options)[:2]
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other, **tolerance)
    heads = [torch.randn_like(tensor) for tensor in actual]
    gradients = (torch.autograd.grad(outputs, inputs, heads) for outputs in (actual, expected))
    loose = {"rtol": 2e-3, "atol": 2e-3} if dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-8}
    for leaf, one, other in zip(inputs, *gradients, strict=True):
        compared = leaf != 0 if leaf is inputs[1] else torch.ones_like(leaf, dtype=torch.bool)  # |a| has a kink at 0
        torch.testing.assert_close(one[compared], other[compared], **loose)


def test_that_comparison_rejects_another_sigma_and_other_iterations():
    """Control."""
    votes, activations = sample((), torch.float64)
    two = moment_route(votes, activations, iterations=2).poses
    assert (two - route(SO2(), votes, activations, sigma=Sigmoid(8.0, 4.0)).poses).abs().max() > 1e-3
    assert (two - route(SO2(), votes, activations, sigma=Linear(), iterations=1).poses).abs().max() > 1e-4


@agreements
def test_no_evidence_and_cancelling_votes_are_undefined(agreement, dtype):
    """As in route: zero pose, zero activation, finite gradients."""
    opposite = SO2().exp(torch.tensor([[0.0], [math.pi]], dtype=dtype))[None]
    for activations in (torch.ones(2, dtype=dtype), torch.zeros(2, dtype=dtype)):
        votes = opposite.clone().requires_grad_()
        routing = moment_route(votes, activations.requires_grad_(), agreement=agreement)
        (routing.poses.sum() + routing.activations.sum()).backward()
        assert routing.poses.norm() < 1e-3
        assert routing.activations.item() < 1e-6
        assert votes.grad.isfinite().all()
        assert activations.grad.isfinite().all()


@agreements
def test_poses_move_and_activations_stay(agreement, shape, dtype, tolerance):
    """Theorems 1 and 2."""
    group = SO2()
    votes, activations = group.exp(0.5 * torch.randn(*shape, 3, 6, 1, dtype=dtype)), torch.rand(*shape, 6, dtype=dtype)
    g = group.random(*shape, 1, 1, dtype=dtype)
    still, moved = (moment_route(v, activations, agreement=agreement) for v in (votes, group.compose(g, votes)))
    torch.testing.assert_close(moved.poses, group.compose(g.squeeze(-2), still.poses), **tolerance)
    torch.testing.assert_close(moved.activations, still.activations, **tolerance)
    assert not torch.allclose(moved.poses, still.poses, **tolerance)
