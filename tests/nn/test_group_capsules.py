import pytest
import torch
from oracles import CLOSED_GROUPS

from equicaps.functional import Linear, Sigmoid, Softmax, route
from equicaps.groups import GL, SO2, SO3
from equicaps.nn import GroupCapsules


@pytest.fixture(params=(*CLOSED_GROUPS, GL(2)), ids=repr)
def group(request):
    return request.param


@pytest.fixture
def case(group, shape, dtype):
    """A layer, poses scattered around a common one, activations, and an element that is not the identity."""
    layer = GroupCapsules(group, in_capsules=6, out_capsules=4).to(dtype)
    scatter = group.exp(0.4 * torch.randn(*shape, 6, group.algebra_dim, dtype=dtype))
    poses = group.compose(group.random(*shape, 1, dtype=dtype), scatter)
    g = group.random(*shape, 1, dtype=dtype)
    assert not torch.allclose(g, group.identity(*shape, 1, dtype=dtype), atol=1e-2)
    return layer, poses, torch.rand(*shape, 6, dtype=dtype) + 0.1, g


def test_poses_are_left_equivariant(group, case, tolerance):
    """Theorem 1: L_p(g ∘ P, a) = g ∘ L_p(P, a)."""
    layer, poses, activations, g = case
    moved = layer(group.compose(g, poses), activations)
    torch.testing.assert_close(moved.poses, group.compose(g, layer(poses, activations).poses), **tolerance)


def test_that_comparison_rejects_invariant_poses(group, case, tolerance):
    """Control: the same comparison must refuse the false claim that poses do not move."""
    layer, poses, activations, g = case
    moved, still = layer(group.compose(g, poses), activations), layer(poses, activations)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(moved.poses, still.poses, **tolerance)


def test_activations_are_invariant(group, case, tolerance):
    """Theorem 2: L_a(g ∘ P, a) = L_a(P, a)."""
    layer, poses, activations, g = case
    moved, still = layer(group.compose(g, poses), activations), layer(poses, activations)
    torch.testing.assert_close(moved.activations, still.activations, **tolerance)


def test_that_comparison_rejects_a_move_that_is_not_joint(group, case, tolerance):
    """Control: activations do change when only one of the poses is moved."""
    layer, poses, activations, g = case
    bent = torch.cat((group.compose(g, poses[..., :1, :]), poses[..., 1:, :]), dim=-2)
    with pytest.raises(AssertionError):
        torch.testing.assert_close(
            layer(bent, activations).activations, layer(poses, activations).activations, **tolerance
        )


def test_two_stacked_layers_stay_equivariant(group, case, tolerance):
    """Transitivity: the composition of two layers has both properties."""
    lower, poses, activations, g = case
    upper = GroupCapsules(group, in_capsules=4, out_capsules=3).to(poses.dtype)

    def network(p):
        middle = lower(p, activations)
        return upper(middle.poses, middle.activations)

    moved, still = network(group.compose(g, poses)), network(poses)
    torch.testing.assert_close(moved.poses, group.compose(g, still.poses), **tolerance)
    torch.testing.assert_close(moved.activations, still.activations, **tolerance)
    assert not torch.allclose(moved.poses, still.poses, **tolerance)


def test_votes_are_poses_times_transforms(dtype):
    """v_ij = p_i ∘ t_ij, in this order; SO(3) would notice the other one."""
    group = SO3()
    layer = GroupCapsules(group, 5, 2).to(dtype)
    poses, activations = group.random(5, dtype=dtype), torch.rand(5, dtype=dtype)
    votes = torch.stack(
        [torch.stack([group.compose(poses[i], layer.transforms[j, i]) for i in range(5)]) for j in range(2)]
    )
    sigma = Sigmoid(layer.trained_sigma.alpha, layer.trained_sigma.beta)
    expected = route(group, votes, activations, sigma=sigma)
    torch.testing.assert_close(layer(poses, activations).poses, expected.poses)


def test_one_step_of_training_changes_every_parameter():
    """t_ij, α and β all receive a gradient, and the loss falls."""
    group = SO2()
    layer = GroupCapsules(group, 6, 3)
    poses, activations = group.random(8, 6), torch.rand(8, 6)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    losses = []
    for _ in range(20):
        routing = layer(poses, activations)
        loss = (1 - routing.activations[:, 0]).mean() + group.distance(routing.poses[:, 0], poses[:, 0]).mean()
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layer.parameters())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


@pytest.mark.parametrize(
    ("sigma", "names"), [(Sigmoid(3.0, 1.0), {"alpha", "beta"}), (Softmax(), {"alpha"}), (Linear(), set())]
)
def test_sigma_fields_are_trained(sigma, names):
    layer = GroupCapsules(SO2(), 4, 2, sigma=sigma)
    assert set(dict(layer.trained_sigma.named_parameters())) == names
    with torch.no_grad():
        for parameter in layer.trained_sigma.parameters():
            parameter.fill_(-1.0)
    poses, activations = SO2().random(4), torch.ones(4)
    fresh = GroupCapsules(SO2(), 4, 2, sigma=sigma)
    fresh.raw_transforms = layer.raw_transforms
    same = torch.allclose(fresh(poses, activations).activations, layer(poses, activations).activations)
    assert same == (not names)


def test_initialisation_is_seeded_and_state_round_trips():
    torch.manual_seed(3)
    first = GroupCapsules(SO3(), 4, 2)
    torch.manual_seed(3)
    second = GroupCapsules(SO3(), 4, 2)
    third = GroupCapsules(SO3(), 4, 2)
    assert torch.equal(first.raw_transforms, second.raw_transforms)
    assert not torch.equal(first.raw_transforms, third.raw_transforms)
    third.load_state_dict(first.state_dict())
    assert torch.equal(first.raw_transforms, third.raw_transforms)


def test_sigma_shows_what_was_trained_and_reset_starts_anew():
    layer = GroupCapsules(SO2(), 4, 2, sigma=Sigmoid(3.0, 1.0), dtype=torch.float64, device="cpu")
    with torch.no_grad():
        layer.trained_sigma.alpha.fill_(9.0)
    assert layer.sigma.alpha.item() == 9.0
    layer.reset_parameters()
    assert layer.sigma.alpha.item() == 3.0
    assert layer.raw_transforms.dtype == torch.float64


def test_repr_shows_the_mathematical_signature():
    assert "6 -> 4 capsules on SO(3)" in repr(GroupCapsules(SO3(), 6, 4))
