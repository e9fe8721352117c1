import pytest
import torch

from equicaps.functional.planar_sweep import over_window


@pytest.mark.parametrize("positions", [1, 4, 9])
def test_sums_over_a_window_are_sums(positions, dtype, tolerance):
    values = torch.randn(2, 3, positions, 5, dtype=dtype)
    torch.testing.assert_close(over_window(values), values.sum(-2), **tolerance)


def test_sums_over_a_rotated_block_are_the_same_to_the_bit(dtype):
    values = torch.randn(1000, 4, 7, dtype=dtype)
    moved = torch.rot90(values.unflatten(1, (2, 2)), 1, (1, 2)).flatten(1, 2)
    assert torch.equal(over_window(moved), over_window(values))
    assert not torch.equal(moved.sum(-2), values.sum(-2))  # control
