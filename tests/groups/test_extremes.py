"""Unusual shapes and extreme values."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from oracles import ALL_GROUPS, CLOSED_GROUPS

from equicaps.functional import Linear, Sigmoid, Softmax, route
from equicaps.groups import GL, SE2, SE3, SO2, SO3, Product, Scale, Translation

shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
exponents = st.integers(-6, 6)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
@given(shape=shapes, n=st.integers(1, 6), exponent=exponents, seed=st.integers(0, 10**6))
def test_mean_is_finite_and_independent_of_the_scale_of_the_weights(group, shape, n, exponent, seed):
    """M(P, c w) = M(P, w) from c = 1e-6 to 1e6, for every batch shape, including empty ones."""
    generator = torch.Generator().manual_seed(seed)
    votes = group.random(*shape, n, generator=generator, dtype=torch.float64)
    weights = torch.rand(*shape, n, generator=generator, dtype=torch.float64) + 0.01
    mean = group.mean(votes, weights)
    assert mean.shape == (*shape, group.dim)
    assert mean.isfinite().all()
    torch.testing.assert_close(group.mean(votes, weights * 10.0**exponent), mean, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
@given(
    shape=shapes,
    m=st.integers(1, 4),
    n=st.integers(1, 5),
    active=st.floats(0, 1),
    sigma=st.sampled_from((Sigmoid(), Sigmoid(100.0, 0.0), Linear(), Softmax())),
    agreement=st.sampled_from(("mean", "weighted")),
    seed=st.integers(0, 10**6),
)
def test_routing_is_finite_for_any_shape_and_sparsity(group, shape, m, n, active, sigma, agreement, seed):
    """Values and gradients are finite whatever share of the input is inactive; without active input activation is 0."""
    generator = torch.Generator().manual_seed(seed)
    votes = group.random(*shape, m, n, generator=generator).requires_grad_()
    activations = (torch.rand(*shape, n, generator=generator) < active).float().requires_grad_()
    routing = route(group, votes, activations, sigma=sigma, agreement=agreement)
    (routing.poses.sum() + routing.activations.sum()).backward()
    assert routing.poses.isfinite().all()
    assert ((routing.activations >= 0) & (routing.activations <= 1 + 1e-5)).all()
    assert votes.grad.isfinite().all()
    assert activations.grad.isfinite().all()
    assert (routing.activations[activations.sum(-1) == 0] == 0).all()


@pytest.mark.parametrize("group", CLOSED_GROUPS, ids=repr)
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["votes", "activations"])
def test_input_that_is_not_finite_never_becomes_a_plausible_pose(group, broken, where):
    votes, activations = group.random(2, 4), torch.rand(4)
    (votes[:, 1] if where == "votes" else activations)[..., 0] = broken
    routing = route(group, votes, activations)
    assert not routing.poses.isfinite().all(-1).any()
    assert not routing.activations.isfinite().any()


def scaled(group, elements, factor):
    """Elements that are ``factor`` times as far from the neutral one, in what a group does not bound."""
    if isinstance(group, Product):
        parts = zip(group.factors, group.split(elements), strict=True)
        return torch.cat([scaled(part, own, factor) for part, own in parts], -1)
    if isinstance(group, SE2 | SE3):
        rotations, translations = elements.split((group.dim - group.point_dim, group.point_dim), -1)
        return torch.cat((rotations, translations * factor), -1)
    return elements if isinstance(group, SO2 | SO3) else elements * factor


@pytest.mark.parametrize("group", ALL_GROUPS, ids=repr)
@pytest.mark.parametrize("factor", [1e30, 1e-30])
def test_huge_and_tiny_elements_have_finite_means_distances_and_inverses(group, factor):
    """In float32, whose squares overflow at 2e19: values and gradients, with huge and tiny weights as well."""
    for scale in (1.0, 1e30, 1e-30):
        elements = scaled(group, group.random(40, 5), factor).requires_grad_()
        weights = (scale * (torch.rand(40, 5) + 0.01)).requires_grad_()
        mean = group.mean(elements, weights)
        apart = group.distance(elements, elements.flip(1))
        (mean.sum() + apart.sum()).backward()
        for value in (mean, apart, group.inverse(elements), elements.grad, weights.grad):
            assert value.isfinite().all()


def test_huge_translations_have_their_distance_and_mean():
    far = torch.tensor([[3e30, 4e30], [0.0, 0.0]])
    torch.testing.assert_close(Translation(2).distance(far[0], far[1]), torch.tensor(5e30))
    torch.testing.assert_close(Translation(2).mean(far, torch.tensor([1e30, 1e30])), torch.tensor([1.5e30, 2e30]))


def test_a_huge_matrix_has_an_inverse():
    group = GL(2)
    g = group.random(10)
    torch.testing.assert_close(group.inverse(1e30 * g) * 1e30, group.inverse(g), rtol=1e-4, atol=1e-5)


def test_a_scaling_that_faded_to_a_denormal_number_is_undefined():
    """Its reciprocal would be infinite."""
    weights = torch.tensor([2.2e-32], requires_grad=True)
    mean = Scale().mean(torch.tensor([[1.4]]), weights)
    assert Scale().inverse(mean) == 0
    Scale().distance(mean, torch.tensor([1.4])).backward()
    assert weights.grad is not None
    assert weights.grad.isfinite().all()
    assert Scale().inverse(torch.tensor([1e-30])) == torch.tensor([1e30])
