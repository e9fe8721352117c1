"""Gathering active windows and putting them back, with the gradients of both."""

import pytest
import torch

from equicaps.functional import Capsules, windows
from equicaps.functional.planes import active_windows, on_grid
from equicaps.groups import SO2


def sample(dtype=torch.float32):
    poses = SO2().random(2, 3, 6, 4, dtype=dtype)
    activations = torch.rand(2, 3, 6, 4, dtype=dtype)
    activations[0, :, :4] = 0
    return Capsules(poses.requires_grad_(), activations.requires_grad_())


@pytest.mark.parametrize(("kernel_size", "stride"), [(2, 2), (2, 1), (4, 2)])
def test_active_windows_are_gathered(kernel_size, stride, dtype):
    """Every window with an active capsule, and its gradient reaches every pixel as often as it was seen."""
    capsules = sample(dtype)
    active = active_windows(capsules, kernel_size, stride)
    seen = windows(capsules.activations, kernel_size, stride)  # (b, c, y, x, k)
    busy = (seen != 0).any(-1).any(1).flatten()
    assert sorted(active.places.tolist()) == busy.nonzero().flatten().tolist()
    assert active.grid == (2, *seen.shape[2:4])
    expected = seen.permute(1, 4, 0, 2, 3).flatten(2)[..., active.places]
    assert torch.equal(active.activations, expected)
    poses = windows(capsules.poses.movedim(-1, 0), kernel_size, stride).permute(0, 2, 5, 1, 3, 4).flatten(3)
    assert torch.equal(active.poses, poses[..., active.places])
    directions = torch.randn_like(active.activations), torch.randn_like(active.poses)
    found = torch.autograd.grad(
        (active.activations * directions[0]).sum() + (active.poses * directions[1]).sum(), capsules
    )
    again = torch.autograd.grad(
        (expected * directions[0]).sum() + (poses[..., active.places] * directions[1]).sum(), capsules
    )
    for one, other in zip(found, again, strict=True):
        torch.testing.assert_close(one, other)


def test_windows_return_to_their_places():
    """Zero elsewhere; the gradient comes back from the same places."""
    capsules = sample()
    active = active_windows(capsules, 2, 2)
    assert 0 < len(active.places) < 2 * 3 * 2
    poses = torch.randn(2, 5, len(active.places), requires_grad=True)
    activations = torch.rand(5, len(active.places), requires_grad=True)
    grid = on_grid(poses, activations, active)
    assert grid.poses.shape == (2, 5, 3, 2, 2)
    assert grid.activations.shape == (2, 5, 3, 2)
    planes = grid.activations.transpose(0, 1).flatten(1)
    assert torch.equal(planes[:, active.places], activations)
    assert (planes != 0).sum() == activations.numel()
    (grid.poses.square().sum() + grid.activations.square().sum()).backward()
    torch.testing.assert_close(poses.grad, 2 * poses)
    torch.testing.assert_close(activations.grad, 2 * activations)


def test_what_returns_is_read_again_without_a_copy():
    """Planes in memory: the next layer's view of them is the same storage."""
    active = active_windows(sample(), 2, 2)
    grid = on_grid(torch.randn(2, 5, len(active.places)), torch.rand(5, len(active.places)), active)
    assert grid.poses.permute(4, 1, 0, 2, 3).is_contiguous()
    assert grid.activations.transpose(0, 1).is_contiguous()


def test_windows_that_are_active_at_the_same_positions_are_neighbours():
    """Sorted by the set of positions, and by place within each."""
    activations = (torch.rand(4, 2, 8, 8) < 0.2).float()
    active = active_windows(Capsules(SO2().random(4, 2, 8, 8), activations), 2, 2)
    kinds = [tuple(column) for column in (active.activations != 0).any(0).T.tolist()]
    runs = [kind for place, kind in enumerate(kinds) if place == 0 or kinds[place - 1] != kind]
    assert len(runs) == len(set(runs)) > 4
    for kind in runs:
        places = active.places[torch.tensor([found == kind for found in kinds])]
        assert places.tolist() == sorted(places.tolist())


def test_windows_of_many_positions_are_all_found():
    """More positions than an integer has bits."""
    activations = torch.zeros(1, 1, 9, 9)
    activations.flatten()[[62, 63, 70, 80]] = 1
    assert active_windows(Capsules(SO2().random(1, 1, 9, 9), activations), 9, 9).places.tolist() == [0]
    assert active_windows(Capsules(SO2().random(1, 1, 9, 9), 0 * activations), 9, 9).places.tolist() == []
