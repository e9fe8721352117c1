import pytest
import torch
from turning import quarter_turn

from equicaps._checks import check_window_grid
from equicaps.functional import Sigmoid, align, mean_pose, route, window_positions, windows
from equicaps.groups import GL, SE2, SO2, Scale


def test_positions_are_centred_with_y_up(dtype):
    """Reading order: top left first."""
    expected = torch.tensor([[-0.5, 0.5], [0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]], dtype=dtype)
    assert torch.equal(window_positions(2, dtype=dtype), expected)
    assert torch.equal(window_positions(3, dtype=dtype)[1], torch.tensor([0.0, 1.0], dtype=dtype))


def test_windows_follow_the_positions():
    """Value k of a window lies at position k of it."""
    x, y = torch.meshgrid(torch.arange(6.0), -torch.arange(4.0), indexing="xy")
    for kernel_size, stride in ((2, 2), (3, 1), (2, 1)):
        columns, rows = windows(x, kernel_size, stride), windows(y, kernel_size, stride)
        offsets = torch.stack((columns, rows), -1)
        offsets = offsets - offsets.mean(-2, keepdim=True)
        expected = window_positions(kernel_size).expand_as(offsets)
        torch.testing.assert_close(offsets, expected)


@pytest.mark.parametrize("group", [SO2(), SE2(), Scale(2), GL(2)], ids=repr)
def test_aligned_positions_are_invariant(group, shape, dtype, tolerance):
    """(g ∘ p̄)⁻¹ (g x) = p̄⁻¹ x, for every g, not only at 90 degrees; without the g on x it is not."""
    g, mean = group.random(dtype=dtype), group.random(*shape, dtype=dtype)
    positions = window_positions(3, dtype=dtype)
    moved = align(group, group.compose(g, mean), group.act(g, positions))
    torch.testing.assert_close(moved, align(group, mean, positions), **tolerance)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(
            align(group, group.compose(g, mean), positions), align(group, mean, positions), **tolerance
        )


@pytest.mark.parametrize("group", [SO2(), SE2(), Scale(2)], ids=repr)
def test_undefined_poses_do_not_count(group, dtype, tolerance):
    """The mean pose of a window is that of its defined poses."""
    poses = group.exp(0.3 * torch.randn(5, group.algebra_dim, dtype=dtype))
    padded = torch.cat((poses, torch.zeros(3, group.dim, dtype=dtype)))
    torch.testing.assert_close(mean_pose(group, padded), mean_pose(group, poses), **tolerance)
    assert not torch.allclose(mean_pose(group, padded), mean_pose(group, poses[:3]), **tolerance)


def test_an_undefined_mean_shrinks_the_window_to_its_centre(dtype):
    """Poses that cancel leave no direction to align with: all positions are 0, also after a rotation."""
    poses = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=dtype)
    aligned = align(SO2(), mean_pose(SO2(), poses), window_positions(2, dtype=dtype))
    assert (aligned == 0).all()


def test_figure_2_votes_agree_only_with_alignment(dtype, tolerance):
    """The 2x2 block of Figure 2: full agreement, pointing up; rotated by 90 degrees it must point left.

    (a) transformations chosen so that all votes point up; (b) the turned block with the transformations at fixed
    positions: poses and transformations are mismatched; (c) the same with aligned positions: full agreement, left.
    """
    group, positions = SO2(), window_positions(2, dtype=dtype)
    up, left = torch.tensor([0.0, 1.0], dtype=dtype), torch.tensor([-1.0, 0.0], dtype=dtype)

    def direction(x):
        return x / x.norm(dim=-1, keepdim=True)

    def t(x):
        return direction(x + torch.tensor([0.9, 0.3], dtype=dtype))

    poses = group.compose(up, group.inverse(t(positions)))
    start = mean_pose(group, poses)
    assert start.norm() > 0.99

    def routed(poses, transforms):
        votes = group.compose(poses, transforms)
        return route(group, votes[None], torch.ones(4, dtype=dtype)), votes

    def t_of_aligned(z):  # the kernel of (a), as a function of aligned positions
        return t(group.act(start, z))

    full = torch.sigmoid(torch.tensor(Sigmoid().beta, dtype=dtype))
    plain, votes = routed(poses, t(positions))
    torch.testing.assert_close(votes, up.expand(4, 2), **tolerance)
    torch.testing.assert_close(plain.activations[0], full, **tolerance)

    turned = torch.rot90(poses.view(2, 2, 2), 1, (0, 1)).reshape(4, 2)
    turned = group.compose(quarter_turn(group, 1, dtype), turned)
    mismatched, _ = routed(turned, t(positions))
    assert mismatched.activations[0] < full - 1e-2
    assert (mismatched.poses[0] - left).norm() > 1e-2

    aligned, votes = routed(turned, t_of_aligned(align(group, mean_pose(group, turned), positions)))
    torch.testing.assert_close(votes, left.expand(4, 2), **tolerance)
    torch.testing.assert_close(aligned.poses[0], left, **tolerance)
    torch.testing.assert_close(aligned.activations[0], full, **tolerance)


@pytest.mark.parametrize(
    ("size", "kernel_size", "stride", "legal"),
    [((7, 8), 2, 2, "6 and 8"), ((8, 6), 3, 2, "7 and 9"), ((1, 4), 2, 2, "2"), ((9, 12), 3, 3, None)],
)
def test_grids_that_cannot_be_exact_are_refused(size, kernel_size, stride, legal):
    if legal is None:
        check_window_grid("Layer", size, kernel_size, stride)
        return
    with pytest.raises(ValueError, match=rf"Nearest legal sizes?: {legal};"):
        check_window_grid("Layer", size, kernel_size, stride)
