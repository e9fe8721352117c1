import pytest
import torch
from oracles import assert_matches_the_matrix_group

from equicaps.groups import GL, SE2, SO2, SO3, Product, Scale, Translation

products = pytest.mark.parametrize(
    "group",
    [Product(SO2(), Translation(2)), Product(SO3(), Scale(), SE2()), Product(Product(SO2(), SO2()), GL(2))],
    ids=repr,
)


@products
def test_matches_the_matrix_group(group, shape, dtype, tolerance):
    assert_matches_the_matrix_group(group, shape, dtype, **tolerance)


@products
def test_is_factor_wise(group, shape, dtype, tolerance):
    """compose and mean concatenate the factors' results; δ is the sum of the factors' distances."""
    g, h = group.random(*shape, 5, dtype=dtype), group.random(*shape, 5, dtype=dtype)
    weights = torch.rand(*shape, 5, dtype=dtype)
    parts = list(zip(group.factors, group.split(g), group.split(h), strict=True))
    together = torch.cat([factor.compose(p, q) for factor, p, q in parts], -1)
    torch.testing.assert_close(group.compose(g, h), together, **tolerance)
    means = torch.cat([factor.mean(p, weights) for factor, p, _ in parts], -1)
    torch.testing.assert_close(group.mean(g, weights), means, **tolerance)
    distances = sum(factor.distance(p, q) for factor, p, q in parts)
    torch.testing.assert_close(group.distance(g, h), distances, **tolerance)


def test_weights_scale_the_factors_distances():
    plain, weighted = Product(SO2(), Scale()), Product(SO2(), Scale(), weights=(3.0, 0.5))
    g, h = plain.random(), plain.random()
    rotation, scale = SO2().distance(g[:2], h[:2]), Scale().distance(g[2:], h[2:])
    torch.testing.assert_close(weighted.distance(g, h), 3 * rotation + 0.5 * scale)
    assert plain != weighted


def test_inherits_the_promises_of_its_factors():
    assert Product(SO2(), Translation(1)).mean_is_closed
    assert not Product(SO2(), GL(2)).mean_is_closed
    assert not Product(SO2(), GL(2)).distance_is_symmetric


def test_a_pose_that_is_undefined_in_one_factor_is_undefined():
    group = Product(SO2(), Translation(2))
    pose = torch.tensor([0.0, 0.0, 1.0, 1.0])
    assert group.presence(pose) == 0
    assert group.presence(group.identity()) == 1
