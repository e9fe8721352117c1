import numpy as np
import pytest
import torch
from oracles import assert_matches_the_matrix_group
from scipy.spatial.transform import Rotation

from equicaps.groups import SO3

group = SO3()


def turn_about_z(degrees: float) -> torch.Tensor:
    return group.exp(torch.tensor([0.0, 0.0, np.radians(degrees)], dtype=torch.float64))


def test_matches_the_matrix_group(shape, dtype, tolerance):
    assert_matches_the_matrix_group(group, shape, dtype, **tolerance)


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 3.0])
def test_mean_matches_scipy(spread, shape, dtype):
    """An independent oracle: scipy averages quaternions, whereas M projects a sum of matrices."""
    center = group.random(*shape, 40, 1, dtype=dtype)
    votes = group.compose(center, group.exp(spread * torch.randn(*shape, 40, 6, 3, dtype=dtype)))
    weights = torch.rand(*shape, 40, 6, dtype=dtype) + 0.1
    ours = group.mean(votes, weights).reshape(-1, 3, 3)
    pairs = zip(votes.reshape(-1, 6, 3, 3).double().numpy(), weights.reshape(-1, 6).double().numpy(), strict=True)
    theirs = np.stack([Rotation.from_matrix(v).mean(w).as_matrix() for v, w in pairs])
    defined = group.presence(ours.flatten(-2)) > 1 - (1e-5 if dtype == torch.float32 else 1e-10)
    assert defined.double().mean() > (0.05 if spread > 1 else 0.8)
    limit = 5e-3 if dtype == torch.float32 else 2e-5  # presence is flat at 1: a length of 1 - x is a presence of 1 - x²
    torch.testing.assert_close(ours[defined].double(), torch.from_numpy(theirs)[defined], rtol=0, atol=limit)


def test_that_comparison_rejects_the_unprojected_sum():
    """Control: scipy's mean is not the plain average of the matrices."""
    votes, weights = group.random(6, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    theirs = Rotation.from_matrix(votes.reshape(6, 3, 3).numpy()).mean().as_matrix()
    plain = (votes * weights[:, None]).mean(0).reshape(3, 3)
    assert (plain - torch.from_numpy(theirs)).abs().max() > 0.1


def gradient_of_mean(votes, weights):
    """Check the analytic gradient against finite differences in float64."""
    return torch.autograd.gradcheck(group.mean, (votes.requires_grad_(), weights.requires_grad_()), atol=1e-6)


def test_gradient_is_correct_when_all_votes_agree():
    """Where the SVD of the sum has three equal singular values and a plain SVD backward gives NaN."""
    votes = group.random(dtype=torch.float64).expand(4, 9).clone()
    assert gradient_of_mean(votes, torch.rand(4, dtype=torch.float64) + 0.1)
    matrix = votes.detach().sum(0).reshape(3, 3).requires_grad_()
    U, _, Vh = torch.linalg.svd(matrix)
    (U @ Vh)[0, 1].backward()
    assert not matrix.grad.isfinite().all(), "the control: the plain SVD does fail here"


def test_gradient_is_correct_when_the_sum_has_rank_two():
    """Singular values (1, 1, 0), up to scale: the mean is unique, and its gradient is correct."""
    votes = torch.stack((turn_about_z(0), turn_about_z(60), group.exp(torch.tensor([np.pi, 0, 0]).double())))
    weights = torch.tensor([1.0, 1.0, 0.3], dtype=torch.float64)
    planar = torch.stack((torch.diag(torch.tensor([1.0, 1.0, 0.0])).double().flatten(), votes[1])).clone()
    assert gradient_of_mean(votes.clone(), weights.clone())
    assert gradient_of_mean(planar[:1].clone(), torch.ones(1, dtype=torch.float64))


def test_gradient_is_correct_when_the_sum_reflects():
    """det S < 0: the nearest orthogonal matrix is a reflection, the nearest rotation is still unique."""
    half_turns = [
        group.exp(torch.tensor(a, dtype=torch.float64) * np.pi) for a in ([1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0])
    ]
    votes = torch.stack(half_turns)
    weights = torch.tensor([0.5, 0.8, 1.1], dtype=torch.float64)
    total = (votes * weights[:, None]).sum(0).reshape(3, 3)
    assert torch.linalg.det(total) < 0
    expected = Rotation.from_matrix(votes.reshape(3, 3, 3).numpy()).mean(weights.numpy()).as_matrix()
    torch.testing.assert_close(group.mean(votes, weights).reshape(3, 3), torch.from_numpy(expected), rtol=0, atol=1e-5)
    assert gradient_of_mean(votes.clone(), weights.clone())


def test_votes_that_cancel_are_the_undefined_pose_with_finite_gradient(dtype):
    """The identity and the half turns Rx(π), Ry(π), Rz(π) sum to zero."""
    axes = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=dtype)
    votes = group.exp(axes * np.pi).requires_grad_()
    assert votes.sum(0).abs().max() < 1e-6
    pose = group.mean(votes, torch.ones(4, dtype=dtype))
    pose.sum().backward()
    assert pose.abs().max() < 1e-6
    assert votes.grad.isfinite().all()


def test_a_tie_between_rotations_is_the_undefined_pose(dtype):
    """Rotations spaced evenly about one axis sum to a projector of rank one, to which all of them are equally near."""
    angles = torch.arange(6, dtype=dtype) * (np.pi / 3)
    votes = group.exp(torch.stack((0 * angles, 0 * angles, angles), dim=-1)).requires_grad_()
    pose = group.mean(votes, torch.ones(6, dtype=dtype))
    pose.sum().backward()
    assert pose.norm() < 1e-3
    assert group.presence(pose) < 1e-3
    assert votes.grad.isfinite().all()


def test_the_mean_of_opposite_rotations_fades_before_it_flips():
    """Rotations by ±α about z: the mean is e below 90°; at 90° e and the half turn tie, and the pose passes zero."""
    half_turn = turn_about_z(180)
    for degrees, expected in ((60.0, group.identity(dtype=torch.float64)), (120.0, half_turn)):
        votes = torch.stack((turn_about_z(degrees), turn_about_z(-degrees)))
        torch.testing.assert_close(group.mean(votes, torch.ones(2, dtype=torch.float64)), expected, rtol=0, atol=1e-6)
    tie = torch.stack((turn_about_z(90), turn_about_z(-90)))
    assert group.presence(group.mean(tie, torch.ones(2, dtype=torch.float64))) < 1e-6


def test_log_of_the_undefined_pose_is_zero_with_finite_gradient(dtype):
    pose = torch.zeros(9, dtype=dtype, requires_grad=True)
    vector = group.log(pose)
    vector.sum().backward()
    assert vector.abs().max() == 0
    assert pose.grad.isfinite().all()


def test_a_reflection_is_not_an_element(dtype):
    reflection = torch.diag(torch.tensor([1.0, 1.0, -1.0], dtype=dtype)).flatten()
    assert not group.contains(reflection)
    assert group.contains(group.identity(dtype=dtype))


def near_ties(count, dtype):
    """Two votes about half a turn apart, with nearly the same weight."""
    first, axes = (
        group.random(count, dtype=dtype),
        torch.nn.functional.normalize(torch.randn(count, 3, dtype=dtype), dim=-1),
    )
    second = group.compose(first, group.exp(axes * torch.pi))
    ratio = 1 + torch.randn(count, dtype=dtype) * 10 ** (-3 * torch.rand(count, dtype=dtype))
    return torch.stack((first, second), 1), torch.stack((torch.ones_like(ratio), ratio.abs()), -1)


@pytest.mark.parametrize(("dtype", "limit"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_a_mean_is_a_rotation_or_fades_as_a_multiple_of_one(dtype, limit):
    """R Rᵀ = u² I to the last digits; u is 0 or 1 but for a few of a hundred, and for a third of those near ties."""
    for votes, weights, share in (
        (*near_ties(5000, dtype), 0.4),
        (group.random(5000, 6, dtype=dtype), torch.rand(5000, 6, dtype=dtype), 0.03),
    ):
        mean = group.mean(votes, weights).unflatten(-1, (3, 3))
        square = mean.square().sum((-2, -1)) / 3
        identity = torch.eye(3, dtype=dtype)
        assert (mean @ mean.mT - square[:, None, None] * identity).abs().max() < limit
        assert (torch.linalg.det(mean) >= 0).all()
        between = (square > 0) & ((square - 1).abs() > 2 * limit)
        assert between.double().mean() < share
