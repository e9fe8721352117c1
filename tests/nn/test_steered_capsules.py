"""From moments to capsules: what rotates and what stays, running powers, agreements."""

import pytest
import torch

from equicaps.functional.steering import Moments
from equicaps.groups import SO3
from equicaps.nn.steered_capsules import SteeredCapsules

ENTRIES = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))


def moments(dtype, n=40, tensors=3):
    matrices = torch.randn(n, tensors, 3, 3, dtype=dtype)
    matrices = matrices + matrices.mT
    six = torch.stack([matrices[..., i, j] for i, j in ENTRIES])
    return Moments(torch.randn(n, 2, dtype=dtype), torch.randn(3, n, 6, dtype=dtype), six), matrices


def rotated(given, matrices, g):
    R = g.view(3, 3)
    turned = R @ matrices @ R.T
    six = torch.stack([turned[..., i, j] for i, j in ENTRIES])
    return Moments(given.scalars, torch.einsum("de,env->dnv", R, given.vectors), six)


@pytest.mark.parametrize("tensors", [0, 3])
def test_poses_rotate_and_features_stay(tensors, dtype, tolerance):
    """p(Rx) = R p(x), f(Rx) = f(x), a(Rx) = a(x)."""
    layer = SteeredCapsules(2, 6, tensors, 5).to(dtype)
    given, matrices = moments(dtype, tensors=tensors)
    layer(given)  # sets running powers
    layer.eval()
    R = SO3().random(dtype=dtype)
    before, after = layer.vote(given), layer.vote(rotated(given, matrices, R))
    torch.testing.assert_close(after[0], SO3().compose(R, before[0]), **tolerance)
    torch.testing.assert_close(after[1], before[1], **tolerance)
    torch.testing.assert_close(after[2], before[2], **tolerance)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after[0], before[0], **tolerance)
    assert before[1].std() > 0.1


def test_padding_does_not_count_in_statistics(dtype, tolerance):
    """A training step with padded places is that without them, except that nothing is at these."""
    torch.manual_seed(0)
    plain, padded = SteeredCapsules(2, 6, 3, 5).to(dtype), SteeredCapsules(2, 6, 3, 5).to(dtype)
    padded.load_state_dict(plain.state_dict())
    given, _ = moments(dtype)
    counts = torch.arange(40) % 3 > 0
    some = given.at(counts.nonzero().squeeze(1))
    expected, found = plain(some), padded(given, counts)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other[counts], one, **tolerance)
        assert not other[~counts].any()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(padded.state_dict()[name], value, **tolerance)
    padded(given)
    with pytest.raises(AssertionError):  # control: other places have other statistics
        torch.testing.assert_close(padded.vector_power, plain.vector_power, **tolerance)


def test_matrices_matter(dtype):
    layer = SteeredCapsules(2, 6, 3, 5).to(dtype).eval()
    given, _ = moments(dtype)
    other = given._replace(tensors=given.tensors * 1.1)
    assert (layer(given)[1] - layer(other)[1]).abs().max() > 1e-3


def test_agreement_is_one_for_votes_that_agree_and_small_for_votes_that_cancel():
    layer = SteeredCapsules(1, 8, 0, 3).double().eval()
    layer.vectors.data.abs_()
    scalars, none = torch.zeros(2, 1).double(), torch.zeros(6, 2, 0).double()
    same = torch.tensor([1.0, 2.0, 3.0]).double()[:, None, None].expand(3, 2, 8)
    # Parallel votes leave no second column, so only their lengths agree.
    a, b = (
        torch.linalg.vector_norm(torch.stack(list(v)), dim=0) for v in layer._steer(Moments(scalars, same, none))[2]
    )
    strength = layer.vectors[:6].sum(1) * 14**0.5
    torch.testing.assert_close(torch.cat((a[0], b[0])), strength)
    mixed = torch.randn(3, 2, 8).double()
    _, _, agreement = layer.vote(Moments(scalars, mixed, none))
    assert (agreement > 0).all()
    assert (agreement <= 1).all()
    assert (layer.vote(Moments(scalars, 0 * mixed, none))[2] == 0).all()


def test_powers_are_those_of_the_first_batch_and_then_follow():
    layer = SteeredCapsules(2, 6, 3, 5)
    given, _ = moments(torch.float32)
    layer(given)
    torch.testing.assert_close(layer.vector_power, given.vectors.square().sum(0).mean(0))
    before = layer.scalar_power.clone()
    layer(given._replace(scalars=10 * given.scalars))
    torch.testing.assert_close(layer.scalar_power, before * (1 + 0.1 * 99), rtol=1e-4, atol=0)
    layer.eval()
    kept = {name: value.clone() for name, value in layer.state_dict().items()}
    layer(given)
    assert all(torch.equal(value, kept[name]) for name, value in layer.state_dict().items())
    layer.reset_parameters()
    assert int(layer.batches) == 0


def test_the_size_of_moments_does_not_matter_to_a_new_layer():
    """Their power is measured, so that moments of any unit are mixed alike."""
    one, other = SteeredCapsules(2, 6, 3, 5), SteeredCapsules(2, 6, 3, 5)
    other.load_state_dict(one.state_dict())
    given, _ = moments(torch.float32)
    small = given._replace(vectors=1e-3 * given.vectors, tensors=1e-3 * given.tensors)
    torch.testing.assert_close(one(given)[1], other(small)[1], rtol=1e-3, atol=1e-3)


def test_nothing_gives_undefined_poses_and_finite_gradients(dtype):
    layer = SteeredCapsules(2, 6, 3, 5).to(dtype)
    given = Moments(*(torch.zeros_like(entry).requires_grad_() for entry in moments(dtype)[0]))
    poses, features, agreement = layer.vote(given)
    assert (poses == 0).all()
    assert (agreement == 0).all()
    gradients = torch.autograd.grad(poses.sum() + features.sum() + agreement.sum(), [*given, *layer.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("wrong", [0, 1.5])
def test_numbers_of_capsules_are_whole(wrong):
    with pytest.raises((TypeError, ValueError), match="out_capsules"):
        SteeredCapsules(2, 6, 3, wrong)


def test_repr_is_the_signature():
    assert "2 scalars + 6 vectors + 3 matrices -> 5 capsules on SO(3)" in repr(SteeredCapsules(2, 6, 3, 5))
