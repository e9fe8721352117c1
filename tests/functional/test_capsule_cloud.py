"""Capsules at points."""

import torch

from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.groups import SO3


def test_chosen_points_keep_their_capsules():
    cloud = CapsuleCloud(torch.randn(2, 5, 3), torch.ones(2, 5), SO3().random(2, 5, 4), torch.rand(2, 5, 4))
    indices, weights = torch.tensor([[4, 0], [1, 1]]), torch.tensor([[0.5, 1.0], [0.2, 0.3]])
    taken = cloud.take(indices, weights)
    for b, row in enumerate(indices.tolist()):
        for m, n in enumerate(row):
            assert torch.equal(taken.positions[b, m], cloud.positions[b, n])
            assert torch.equal(taken.poses[b, m], cloud.poses[b, n])
            assert torch.equal(taken.activations[b, m], cloud.activations[b, n])
    assert torch.equal(taken.weights, weights)
