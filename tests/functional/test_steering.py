"""Frames and what is read at them, against matrices."""

import pytest
import torch

from equicaps.functional.steering import PAIRS, Moments, agreed_frames, dot, flattened, tensors_at, vectors_at
from equicaps.groups import SO3


def planes(vectors):
    """(..., n, c, 3) -> coordinates first."""
    return list(vectors.unbind(-1))


def sample(dtype, n=7, c=4):
    return torch.randn(2, n, c, 3, dtype=dtype), torch.full((2, c), 0.01, dtype=dtype)


def matrices(frame):
    return flattened(frame).unflatten(-1, (3, 3))


def test_frames_are_rotations_whose_first_column_is_the_first_vector(dtype, tolerance):
    (a, b), floors = sample(dtype)
    p = matrices(agreed_frames(planes(a), planes(b), floors))
    assert SO3().contains(p.flatten(-2)).all()
    torch.testing.assert_close(p[..., 0], a / a.norm(dim=-1, keepdim=True), **tolerance)
    assert ((p[..., 1] * b).sum(-1) > 0).all()


def test_frames_rotate_with_their_vectors(dtype, tolerance):
    """p(Ra, Rb) = R p(a, b), also where frames fade."""
    (a, b), _ = sample(dtype)
    floors, R = torch.full((2, 4), 0.8, dtype=dtype), SO3().random(dtype=dtype)
    before = matrices(agreed_frames(planes(a), planes(b), floors))
    after = matrices(agreed_frames(planes(SO3().act(R, a)), planes(SO3().act(R, b)), floors))
    assert (SO3().presence(before.flatten(-2)) < 0.9).any()
    torch.testing.assert_close(after, R.view(3, 3) @ before, **tolerance)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after, before, **tolerance)


@pytest.mark.parametrize("case", ["zero", "parallel", "opposite"])
def test_undefined_frames_are_zero_with_finite_gradients(case, dtype):
    a = torch.zeros(1, 1, 3, dtype=dtype) if case == "zero" else torch.tensor([[[1.0, 2, 3]]], dtype=dtype)
    b = {"zero": a + 1, "parallel": 2 * a, "opposite": -a}[case].clone()
    a, b = a.requires_grad_(), b.requires_grad_()
    frame = agreed_frames(planes(a), planes(b), torch.full((2, 1), 0.1, dtype=dtype))
    poses = flattened(frame)
    assert SO3().presence(poses).item() < 0.6  # a plane is left of the second column at most
    assert poses.unflatten(-1, (3, 3))[..., 2].abs().max() < 1e-5
    gradients = torch.autograd.grad(poses.square().sum() + poses.sum(), (a, b))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_vectors_and_matrices_are_read_at_the_frame(dtype, tolerance):
    """Σ <y_k, e_k> and Σ e_iᵀ Y e_j, with einsum."""
    (a, b), floors = sample(dtype)
    frame = agreed_frames(planes(a), planes(b), floors)
    p = matrices(frame)
    y = torch.randn(3, 7, 4, 3, dtype=dtype)
    torch.testing.assert_close(
        vectors_at(frame, [planes(entry) for entry in y]), torch.einsum("kncd,ncdk->nc", y, p), **tolerance
    )
    Y = torch.randn(5, 7, 4, 3, 3, dtype=dtype)
    Y = Y + Y.mT
    sixes = [[entry[..., i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))] for entry in Y]
    expected = sum(
        torch.einsum("ncd,ncde,nce->nc", p[..., i], m, p[..., j]) for m, (i, j) in zip(Y, PAIRS, strict=True)
    )
    torch.testing.assert_close(tensors_at(frame, sixes), expected, **tolerance)


def test_dot_is_the_scalar_product(dtype, tolerance):
    a, b = torch.randn(2, 7, 4, 3, dtype=dtype)
    torch.testing.assert_close(dot(planes(a), planes(b)), (a * b).sum(-1), **tolerance)


def test_moments_are_joined_channel_by_channel():
    one = Moments(torch.zeros(5, 2), torch.zeros(3, 5, 1), torch.zeros(6, 5, 0))
    other = Moments(torch.ones(5, 1), torch.ones(3, 5, 4), torch.ones(6, 5, 3))
    whole = Moments.cat([one, other])
    assert [tuple(entry.shape) for entry in whole] == [(5, 3), (3, 5, 5), (6, 5, 3)]
    assert whole.scalars[0].tolist() == [0, 0, 1]
