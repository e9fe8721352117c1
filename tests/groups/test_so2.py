import math

import pytest
import torch
from oracles import assert_matches_the_matrix_group

from equicaps.groups import SO2
from equicaps.numerics import CANCELLATION

group = SO2()


def test_matches_the_matrix_group(shape, dtype, tolerance):
    assert_matches_the_matrix_group(group, shape, dtype, **tolerance)


def test_a_quarter_turn_is_counter_clockwise_with_y_up(dtype):
    """act(90°, right) = up, and torch.rot90(img, 1, (-2, -1)) moves a bright pixel the same way."""
    quarter = group.exp(torch.tensor([math.pi / 2], dtype=dtype))
    right, up = torch.tensor([1.0, 0.0], dtype=dtype), torch.tensor([0.0, 1.0], dtype=dtype)
    torch.testing.assert_close(group.act(quarter, right), up)
    image = torch.zeros(5, 5, dtype=dtype)
    image[2, 4] = 1  # right of the centre
    row, column = torch.rot90(image, 1, (-2, -1)).nonzero()[0].tolist()
    moved = torch.tensor([column - 2.0, 2.0 - row], dtype=dtype) / 2  # x right, y up
    torch.testing.assert_close(moved, group.act(quarter, right))


def test_mean_is_the_direction_of_the_sum(shape, dtype, tolerance):
    votes, weights = group.exp(torch.randn(*shape, 7, 1, dtype=dtype) / 4), torch.rand(*shape, 7, dtype=dtype)
    total = (votes * weights[..., None]).sum(-2)
    expected = total / total.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(group.mean(votes, weights), expected, **tolerance)


def test_mean_has_unit_length_to_the_last_bit_unless_votes_cancel():
    votes, weights = group.random(1000, 3, dtype=torch.float64), torch.rand(1000, 3, dtype=torch.float64)
    resultant = (votes * weights[..., None]).sum(-2).norm(dim=-1) / weights.sum(-1)
    length = group.mean(votes, weights).norm(dim=-1)
    clear = resultant > 2.6 * CANCELLATION
    assert 0.5 < clear.double().mean() < 1
    torch.testing.assert_close(length[clear], torch.ones_like(length[clear]), rtol=1e-14, atol=0)


def test_votes_that_cancel_shrink_smoothly(dtype):
    """The length falls from 1 to 0 as the resultant does; its slope is bounded by 1.22 / CANCELLATION."""
    votes = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=dtype)
    imbalance = torch.linspace(0, 0.3, 2001, dtype=dtype)
    weights = torch.stack((1 + imbalance, 1 - imbalance), dim=-1) / 2
    length = group.mean(votes.expand(2001, 2, 2), weights).norm(dim=-1)
    assert length[0] == 0
    assert length[-1] > 0.999
    assert (length.diff() >= -1e-6).all()
    slope = length.diff() / imbalance.diff()
    assert slope.max() <= 1.22 / CANCELLATION


def test_rounding_noise_is_not_a_direction():
    """Four votes that cancel but for float32 rounding give a pose far below 0.5, not a unit vector."""
    angles = torch.arange(4) * (math.pi / 2) + 0.3
    votes = torch.stack((angles.cos(), angles.sin()), dim=-1)
    residue = votes.sum(0)
    assert 0 < residue.norm() < 1e-6, "the control: rounding leaves a residue that could be blown up"
    assert group.mean(votes, torch.ones(4)).norm() < 1e-3


def test_zero_weights_have_finite_gradients(dtype):
    votes = group.random(5, dtype=dtype).requires_grad_()
    weights = torch.zeros(5, dtype=dtype, requires_grad=True)
    group.mean(votes, weights).sum().backward()
    assert votes.grad.isfinite().all()
    assert weights.grad.isfinite().all()


def test_log_of_the_undefined_pose_is_zero_with_finite_gradient(dtype):
    pose = torch.zeros(2, dtype=dtype, requires_grad=True)
    angle = group.log(pose)
    angle.backward()
    assert angle.item() == 0
    assert pose.grad.isfinite().all()


@pytest.mark.parametrize("degrees", [-179, -90, 0, 45, 179])
def test_log_reads_the_angle(degrees, dtype):
    angle = torch.tensor([math.radians(degrees)], dtype=dtype)
    torch.testing.assert_close(group.log(group.exp(angle)), angle)


@pytest.mark.parametrize("floor", [0.0, 1.0, -0.1, float("nan")])
def test_an_impossible_floor_is_refused(floor):
    with pytest.raises(ValueError, match="between 0 and 1"):
        SO2(floor)


def test_a_lower_floor_defines_more_poses():
    """Two votes that nearly cancel; the group says which floor it has."""
    votes = SO2().exp(torch.tensor([[0.0], [math.pi - 0.1]]))
    lengths = [SO2(floor).mean(votes, torch.ones(2)).norm() for floor in (0.3, 0.1, 0.02)]
    assert lengths[0] < lengths[1] < lengths[2]
    assert lengths[2] > 0.99
    assert repr(SO2(0.02)) == "SO(2), floor 0.02"
    assert repr(SO2()) == "SO(2)"
    assert SO2(0.02) != SO2() == SO2(0.1)
