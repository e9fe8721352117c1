import pytest
import torch
from oracles import assert_matches_the_matrix_group

from equicaps.functional import route
from equicaps.groups import GL
from equicaps.testing import check_group


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_matches_the_matrix_group(n, shape, dtype, tolerance):
    assert_matches_the_matrix_group(GL(n), shape, dtype, **tolerance)


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8])
def test_inverse_is_the_matrix_inverse_even_of_reflections(n, dtype):
    matrix = torch.linalg.qr(torch.randn(20, n, n, dtype=torch.float64)).Q * torch.linspace(0.2, 3, n).double()
    matrix[0, 0] *= -1  # flips the sign of one determinant, whatever it was
    assert {-1.0, 1.0} <= set(torch.linalg.det(matrix).sign().tolist()), "both components are in the sample"
    ours = GL(n).inverse(matrix.to(dtype).flatten(-2)).unflatten(-1, (n, n))
    limit = 1e-4 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(ours.double(), torch.linalg.inv(matrix), rtol=limit, atol=limit)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_singularity_is_relative_to_the_size_of_the_matrix(scale, dtype):
    """A tiny multiple of a matrix is as regular as a large one."""
    matrix = scale * torch.tensor([2.0, 1.0, 0.0, 1.0], dtype=dtype)
    expected = torch.linalg.inv(matrix.double().reshape(2, 2)).flatten().to(dtype)
    torch.testing.assert_close(GL(2).inverse(matrix), expected)
    assert GL(2).contains(matrix)


def test_singular_mean_is_the_undefined_pose(dtype):
    """M(I, -I) = 0 leaves the group: presence, inverse and activation are 0, nothing is inf, gradients are finite."""
    group = GL(2)
    identity = group.identity(dtype=dtype)
    votes = torch.stack((identity, -identity)).expand(1, 2, 4).clone().requires_grad_()
    activations = torch.ones(2, dtype=dtype)
    mean = group.mean(votes[0], activations)
    assert not group.contains(mean)
    assert group.presence(mean) == 0
    assert (group.inverse(mean) == 0).all()
    routing = route(group, votes, activations)
    (routing.poses.sum() + routing.activations.sum()).backward()
    assert routing.activations.item() == 0
    assert routing.poses.isfinite().all()
    assert votes.grad.isfinite().all()


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_inverse_of_a_rank_deficient_matrix_is_zero_with_finite_gradient(rank, dtype):
    factor = torch.randn(3, max(rank, 1), dtype=dtype) * (rank > 0)
    matrix = (factor @ factor.T).flatten().requires_grad_()
    inverse = GL(3).inverse(matrix)
    inverse.sum().backward()
    assert inverse.isfinite().all()
    assert matrix.grad.isfinite().all()
    assert GL(3).presence(matrix) < 0.1


def test_anisotropic_matrices_are_regular():
    """diag(1, 1e-4, 1e-4): condition number 1e4, and left-invariance of δ holds there."""
    group = GL(3)
    g = torch.diag(torch.tensor([1.0, 1e-4, 1e-4], dtype=torch.float64)).flatten()
    p, q = group.random(dtype=torch.float64), group.random(dtype=torch.float64)
    assert group.contains(g)
    torch.testing.assert_close(group.compose(group.inverse(g), g), group.identity(dtype=torch.float64))
    torch.testing.assert_close(group.distance(group.compose(g, p), group.compose(g, q)), group.distance(p, q))


@pytest.mark.parametrize("n", [6, 8])
def test_large_groups_pass_the_check(n):
    assert check_group(GL(n)).ok


def test_declares_which_condition_of_theorem_1_it_cannot_promise():
    assert not GL(2).mean_is_closed
    assert not GL(2).distance_is_symmetric


def test_exp_does_not_undo_log_for_a_matrix_without_a_logarithm():
    """diag(1, -1) has no real logarithm: exp(log(g)) ≠ g, as documented."""
    g = torch.tensor([1.0, 0.0, 0.0, -1.0], dtype=torch.float64)
    back = GL(2).exp(GL(2).log(g))
    assert not torch.allclose(back, g, equal_nan=False)
