import pytest
import torch

from equicaps.nn import BatchNorm2d


def positions(*shape):
    """About half of the positions are active; what is not active is enormous, so that it would show."""
    active = torch.rand(shape[0], *shape[2:]) < 0.5
    x = torch.randn(shape, dtype=torch.float64) * 3 + 5
    return torch.where(active.unsqueeze(1), x, 1e9), active


def test_it_normalises_the_active_positions_as_torch_does_with_them_alone():
    x, active = positions(4, 3, 5, 6)
    ours, theirs = BatchNorm2d(3).double(), torch.nn.BatchNorm2d(3).double()
    for norm in (ours, theirs):
        torch.nn.init.uniform_(norm.weight, 0.5, 2, generator=torch.Generator().manual_seed(0))
        torch.nn.init.uniform_(norm.bias, 0.5, 2, generator=torch.Generator().manual_seed(1))
    x.requires_grad_()
    found = ours(x, active).movedim(1, -1)[active]
    alone = x.detach().movedim(1, -1)[active].requires_grad_()
    expected = theirs(alone[:, :, None, None]).flatten(1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(dict(ours.named_buffers()), dict(theirs.named_buffers()))
    by = torch.randn_like(found)
    found.backward(by)
    expected.backward(by)
    torch.testing.assert_close(x.grad.movedim(1, -1)[active], alone.grad)
    assert not x.grad.movedim(1, -1)[~active].any()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad)


def test_everything_active_is_torchs_own():
    x, _ = positions(4, 3, 5, 6)
    ours, theirs = BatchNorm2d(3).double(), torch.nn.BatchNorm2d(3).double()
    everything = torch.ones(4, 5, 6, dtype=torch.bool)
    torch.testing.assert_close(ours(x, everything), theirs(x))


@pytest.mark.parametrize("count", [0, 1])
def test_a_batch_that_shows_nothing_leaves_the_statistics_alone(count):
    x, norm = torch.randn(2, 3, 4, 4, requires_grad=True), BatchNorm2d(3)
    active = torch.zeros(2, 4, 4, dtype=torch.bool)
    active.view(-1)[:count] = True
    out = torch.where(active.unsqueeze(1), norm(x, active), 0)
    out.sum().backward()
    assert out.isfinite().all()
    assert x.grad.isfinite().all()
    torch.testing.assert_close(norm.running_mean, torch.zeros(3))
    torch.testing.assert_close(norm.running_var, torch.ones(3))


def test_in_eval_mode_the_active_positions_make_no_difference():
    x, active = positions(2, 3, 4, 4)
    norm = BatchNorm2d(3).double().eval()
    torch.testing.assert_close(norm(x, active), norm(x))
