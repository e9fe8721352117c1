import pytest
import torch
from oracles import assert_matches_the_matrix_group

from equicaps.groups import Translation


@pytest.mark.parametrize("n", [1, 2, 5])
def test_matches_the_matrix_group(n, shape, dtype, tolerance):
    assert_matches_the_matrix_group(Translation(n), shape, dtype, **tolerance)


def test_mean_is_the_weighted_average(shape, dtype, tolerance):
    votes, weights = torch.randn(*shape, 6, 2, dtype=dtype), torch.rand(*shape, 6, dtype=dtype)
    expected = (votes * weights[..., None]).sum(-2) / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(Translation(2).mean(votes, weights), expected, **tolerance)


def test_negative_total_weight_is_still_an_affine_combination(dtype, tolerance):
    votes, weights = torch.randn(3, 2, dtype=dtype), torch.tensor([-1.0, -2.0, 0.5], dtype=dtype)
    shifted = Translation(2).mean(votes + 10, weights)
    torch.testing.assert_close(shifted, Translation(2).mean(votes, weights) + 10, **tolerance)
