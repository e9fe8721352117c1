import pytest
import torch
from oracles import assert_matches_the_matrix_group

from equicaps.groups import SE2, SE3

both = pytest.mark.parametrize("group", [SE2(), SE3()], ids=repr)


@both
def test_matches_the_matrix_group(group, shape, dtype, tolerance):
    assert_matches_the_matrix_group(group, shape, dtype, **tolerance)


@both
def test_acts_as_a_rigid_motion(group, shape, dtype, tolerance):
    """Distances between points do not change, and the motion is not the identity."""
    g = group.random(*shape, dtype=dtype)
    x, y = torch.randn(2, *shape, group.point_dim, dtype=dtype)
    before, after = (x - y).norm(dim=-1), (group.act(g, x) - group.act(g, y)).norm(dim=-1)
    torch.testing.assert_close(after, before, **tolerance)
    assert not torch.allclose(group.act(g, x), x)


def test_a_rotation_rotates_the_translation_applied_first():
    """(90°, 0) ∘ (0°, right) = (90°, up); in the direct product it would be (90°, right)."""
    quarter, shift = torch.tensor([0.0, 1.0, 0.0, 0.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    torch.testing.assert_close(SE2().compose(quarter, shift), torch.tensor([0.0, 1.0, 0.0, 1.0]))


@both
def test_translation_weight_scales_the_distance_of_translations(group, dtype, tolerance):
    weighted = type(group)(translation_weight=3.0)
    g, h = group.random(dtype=dtype), group.random(dtype=dtype)
    size = group.rotations.dim
    shift = (g[size:] - h[size:]).norm()
    torch.testing.assert_close(weighted.distance(g, h) - group.distance(g, h), 2 * shift, **tolerance)


@both
def test_rotations_that_cancel_make_the_whole_pose_undefined(group):
    """The mean translation alone is not a pose: presence is 0, although the translation still moves with the votes."""
    rotation = group.rotations
    turns = rotation.exp(torch.eye(rotation.algebra_dim)[0] * torch.pi * torch.tensor([[0.0], [1.0]]))
    if rotation.dim == 9:
        turns = rotation.exp(torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * torch.pi)
    elements = torch.cat((turns, torch.ones(len(turns), group.point_dim)), dim=-1)
    mean = group.mean(elements, torch.ones(len(turns)))
    assert group.presence(mean) < 1e-6
    g = group.random()
    moved = group.mean(group.compose(g, elements), torch.ones(len(turns)))
    torch.testing.assert_close(moved, group.compose(g, mean), rtol=1e-4, atol=1e-4)
