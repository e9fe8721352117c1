import math

import pytest
import torch

from equicaps.groups import GL, SE2, SE3, SO2, SO3, Product, Scale, Translation, karcher_mean

everywhere = (SO2(), SO3(), Translation(3), GL(2), SE2(), SE3(), Scale(), Product(SO2(), Scale()))


def scattered(group, shape, dtype, radius=0.3):
    """Votes near a common element, where the mean is unique."""
    noise = group.exp(radius * torch.randn(*shape, 6, group.algebra_dim, dtype=dtype))
    return group.compose(group.random(*shape, 1, dtype=dtype), noise), torch.rand(*shape, 6, dtype=dtype) + 0.1


@pytest.mark.parametrize("group", [Translation(3), Scale()], ids=repr)
def test_matches_the_closed_form(group, shape, dtype, tolerance):
    votes, weights = scattered(group, shape, dtype)
    torch.testing.assert_close(karcher_mean(group, votes, weights), group.mean(votes, weights), **tolerance)


def test_on_so2_averages_the_angles(shape, dtype, tolerance):
    """The Riemannian mean of angles is their weighted mean; the chordal mean is not."""
    angles, weights = torch.rand(*shape, 6, 1, dtype=dtype) * 2, torch.rand(*shape, 6, dtype=dtype) + 0.1
    expected = SO2().exp((angles[..., 0] * weights).sum(-1, keepdim=True) / weights.sum(-1, keepdim=True))
    votes = SO2().exp(angles)
    torch.testing.assert_close(karcher_mean(SO2(), votes, weights), expected, **tolerance)
    assert not torch.allclose(SO2().mean(votes, weights), expected, atol=1e-6), "the control: they do differ"


def test_on_so3_meets_the_chordal_mean_at_the_midpoint(shape, dtype, tolerance):
    """Of two equally weighted rotations both means are the midpoint of the geodesic."""
    votes = scattered(SO3(), shape, dtype)[0][..., :2, :]
    weights = torch.ones(*shape, 2, dtype=dtype)
    torch.testing.assert_close(karcher_mean(SO3(), votes, weights), SO3().mean(votes, weights), **tolerance)


@pytest.mark.parametrize("group", everywhere, ids=repr)
def test_is_left_equivariant_and_ignores_order(group, shape, dtype):
    """M(g ∘ P, w) = g ∘ M(P, w) and M(πP, πw) = M(P, w)."""
    votes, weights = scattered(group, shape, dtype)
    limit = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-8, "atol": 1e-8}
    g = group.random(*shape, dtype=dtype)
    mean = karcher_mean(group, votes, weights)
    moved = karcher_mean(group, group.compose(g.unsqueeze(-2), votes), weights)
    torch.testing.assert_close(moved, group.compose(g, mean), **limit)
    assert not torch.allclose(moved, mean, **limit)
    torch.testing.assert_close(karcher_mean(group, votes.flip(-2), weights.flip(-1)), mean, **limit)


@pytest.mark.parametrize("group", everywhere, ids=repr)
def test_is_the_point_where_the_weighted_logarithms_vanish(group):
    """Σ w log(p⁻¹ ∘ v) = 0; a step away from the mean it does not."""
    votes, weights = scattered(group, (), torch.float64)
    mean = karcher_mean(group, votes, weights)

    def residual(p):
        tangents = group.log(group.compose(group.inverse(p).unsqueeze(-2), votes))
        return (tangents * weights[:, None]).sum(0).abs().max()

    off = group.compose(mean, group.exp(0.1 * torch.ones(group.algebra_dim, dtype=torch.float64)))
    assert residual(mean) < 1e-9
    assert residual(off) > 1e-2


@pytest.mark.parametrize("group", [SO2(), SO3(), SE2(), Scale()], ids=repr)
def test_gradient_is_correct(group):
    votes, weights = scattered(group, (), torch.float64)
    inputs = (votes[:3].clone().requires_grad_(), weights[:3].clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda v, w: karcher_mean(group, v, w), inputs, atol=1e-6)


def test_equal_votes_and_no_evidence_have_finite_gradients(dtype):
    for group in (SO2(), SO3(), SE3()):
        for weights in (torch.ones(4, dtype=dtype), torch.zeros(4, dtype=dtype)):
            votes = group.random(dtype=dtype).expand(4, -1).clone().requires_grad_()
            mean = karcher_mean(group, votes, weights)
            mean.sum().backward()
            assert votes.grad.isfinite().all()
            if weights.sum() == 0:
                assert (mean == 0).all()


def test_reaches_the_mean_of_a_wide_half_circle():
    angles = torch.tensor([-1.4, -1.0, 0.2, 1.4], dtype=torch.float64)[:, None]
    mean = karcher_mean(SO2(), SO2().exp(angles), torch.ones(4, dtype=torch.float64))
    assert math.isclose(SO2().log(mean).item(), angles.mean().item(), abs_tol=1e-12)
