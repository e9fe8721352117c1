"""Moments of clouds and of capsules, against sums in plain loops."""

import pytest
import torch

from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.local_moments import bumps
from equicaps.functional.point_moments import (
    ENTRIES,
    capsule_moments,
    centre,
    cloud_moments,
    mean_moments,
    normalised,
    own_moments,
)
from equicaps.groups import SO3


def capsules(dtype=torch.float64, batch=2, n=9, count=3):
    positions = torch.randn(batch, n, 3, dtype=dtype)
    weights = torch.rand(batch, n, dtype=dtype)
    return CapsuleCloud(
        positions, weights, SO3().random(batch, n, count, dtype=dtype), torch.rand(batch, n, count, dtype=dtype)
    )


def rotated(cloud, g):
    return cloud._replace(positions=SO3().act(g, cloud.positions), poses=SO3().compose(g, cloud.poses))


def test_capsule_moments_are_sums_over_neighbours(dtype, tolerance):
    """Of features f: Σ B f, Σ B f u, Σ B f u uᵀ; of poses: Σ B f e_k, for every ring and capsule."""
    cloud = capsules(dtype)
    centres = cloud.positions[:, :2]
    found = capsule_moments(centres, cloud, radius=2.0, rings=2, order=2)
    weights = normalised(cloud.weights)
    for b in range(2):
        for m in range(2):
            row = 2 * b + m
            for c in range(3):
                for ring in range(2):
                    channel = 3 * ring + c
                    scalar, vector, matrix = 0.0, torch.zeros(3, dtype=dtype), torch.zeros(3, 3, dtype=dtype)
                    columns = torch.zeros(3, 3, dtype=dtype)
                    for j in range(9):
                        u = (cloud.positions[b, j] - centres[b, m]) / 2.0
                        amount = weights[b, j] * bumps(1 - u.square().sum(), 2)[ring] * cloud.activations[b, j, c]
                        scalar, vector, matrix = (
                            scalar + amount,
                            vector + amount * u,
                            matrix + amount * torch.outer(u, u),
                        )
                        columns = columns + amount * cloud.poses[b, j, c].view(3, 3)
                    torch.testing.assert_close(found.scalars[row, channel], scalar, **tolerance)
                    torch.testing.assert_close(found.vectors[:, row, channel], vector, **tolerance)
                    six = torch.stack([matrix[i, j] for i, j in ENTRIES])
                    torch.testing.assert_close(found.tensors[:, row, channel], six, **tolerance)
                    for k in range(3):
                        torch.testing.assert_close(
                            found.vectors[:, row, 6 + 6 * k + channel], columns[:, k], **tolerance
                        )
    assert found.vectors.shape == (3, 4, 4 * 6)


def test_without_the_second_order_there_are_no_matrices(dtype, tolerance):
    cloud = capsules(dtype)
    first, second = (capsule_moments(cloud.positions[:, :2], cloud, radius=2.0, rings=2, order=k) for k in (1, 2))
    assert first.tensors.shape[-1] == 0
    torch.testing.assert_close(first.vectors, second.vectors, **tolerance)


def test_own_moments_are_the_features_and_columns_of_each_point(dtype, tolerance):
    cloud = capsules(dtype)
    found = own_moments(cloud)
    p = (cloud.poses.unflatten(-1, (3, 3)) * cloud.activations[..., None, None]).flatten(0, 1)
    torch.testing.assert_close(found.scalars, cloud.activations.flatten(0, 1))
    torch.testing.assert_close(found.vectors, p.permute(2, 0, 3, 1).flatten(2), **tolerance)


def test_mean_moments_are_means_of_own_moments(dtype, tolerance):
    cloud = capsules(dtype)
    own, weights = own_moments(cloud), normalised(cloud.weights)
    found = mean_moments(cloud)
    for b in range(2):
        places = slice(9 * b, 9 * b + 9)
        torch.testing.assert_close(found.scalars[b], weights[b] @ own.scalars[places], **tolerance)
        torch.testing.assert_close(found.vectors[:, b], weights[b] @ own.vectors[:, places], **tolerance)


@pytest.mark.parametrize("kind", ["cloud", "capsules", "own", "mean"])
def test_scalars_stay_and_vectors_rotate(kind, dtype, tolerance):
    cloud, R = capsules(dtype), SO3().random(dtype=dtype)

    def moments(given):
        if kind == "own":
            return own_moments(given)
        if kind == "mean":
            return mean_moments(given)
        if kind == "capsules":
            return capsule_moments(given.positions[:, :4], given, radius=2.0, rings=2, order=2)
        return cloud_moments(given.positions[:, :4], given.positions, given.weights, radius=1.5, rings=3)

    before, after = moments(cloud), moments(rotated(cloud, R))
    torch.testing.assert_close(after.scalars, before.scalars, **tolerance)
    turned = torch.einsum("de,env->dnv", R.view(3, 3), before.vectors)
    torch.testing.assert_close(after.vectors, turned, **tolerance)
    with pytest.raises(AssertionError):  # control
        torch.testing.assert_close(after.vectors, before.vectors, **tolerance)


def test_matrices_rotate(dtype, tolerance):
    """T(Rx) = R T Rᵀ."""
    cloud, R = capsules(dtype), SO3().random(dtype=dtype)
    before, after = (
        capsule_moments(given.positions[:, :4], given, radius=2.0, rings=2, order=2).tensors
        for given in (cloud, rotated(cloud, R))
    )
    full = [torch.stack([t[list(row)] for row in ((0, 3, 4), (3, 1, 5), (4, 5, 2))]) for t in (before, after)]
    expected = torch.einsum("ai,ijnv,bj->abnv", R.view(3, 3), full[0], R.view(3, 3))
    torch.testing.assert_close(full[1], expected, **tolerance)


@pytest.mark.parametrize("scale", [True, False])
def test_centred_clouds_do_not_know_where_they_were(scale, dtype, tolerance):
    points, weights = torch.randn(2, 50, 3, dtype=dtype), torch.rand(2, 50, dtype=dtype)
    here = centre(points, weights, scale=scale).points
    there = centre(points + 7, weights, scale=scale).points
    torch.testing.assert_close(there, here, **tolerance)
    torch.testing.assert_close(weights.unsqueeze(1) @ here, torch.zeros(2, 1, 3, dtype=dtype), **tolerance)
    large = centre(3 * points, weights, scale=scale).points
    torch.testing.assert_close(large, here if scale else 3 * here, **tolerance)
    if scale:
        size = (here.square().sum(-1) * normalised(weights)).sum(1)
        torch.testing.assert_close(size, torch.ones(2, dtype=dtype), **tolerance)


def test_a_cloud_without_extent_stays_a_point():
    found = centre(torch.full((1, 4, 3), 5.0), torch.ones(1, 4), scale=True)
    assert (found.points == 0).all()


def test_weights_without_any_are_zero():
    assert normalised(torch.zeros(1, 3)).tolist() == [[0, 0, 0]]
