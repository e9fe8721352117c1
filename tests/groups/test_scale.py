import torch
from oracles import assert_matches_the_matrix_group

from equicaps.groups import Scale


def test_matches_the_matrix_group(shape, dtype, tolerance):
    assert_matches_the_matrix_group(Scale(), shape, dtype, **tolerance)


def test_mean_is_geometric(dtype):
    """M((2, 8), (1, 1)) = 4, not 5."""
    mean = Scale().mean(torch.tensor([[2.0], [8.0]], dtype=dtype), torch.ones(2, dtype=dtype))
    torch.testing.assert_close(mean, torch.tensor([4.0], dtype=dtype))


def test_the_undefined_pose_does_not_count_in_the_mean(dtype):
    votes = torch.tensor([[2.0], [0.0], [8.0]], dtype=dtype, requires_grad=True)
    mean = Scale().mean(votes, torch.ones(3, dtype=dtype))
    mean.backward()
    torch.testing.assert_close(mean.detach(), torch.tensor([4.0], dtype=dtype))
    assert votes.grad.isfinite().all()


def test_scales_points_of_its_dimension(dtype):
    points = torch.tensor([1.0, -2.0], dtype=dtype)
    torch.testing.assert_close(Scale(2).act(torch.tensor([3.0], dtype=dtype), points), 3 * points)
