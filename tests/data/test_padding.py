"""Clouds of different lengths in one batch."""

import torch

from equicaps.data.padding import PaddedClouds


def test_points_have_weight_1_and_padding_0():
    clouds = [torch.randn(count, 3, dtype=kind) for count, kind in ((2, torch.float64), (5, torch.float32), (0, None))]
    points, weights = PaddedClouds.of(clouds)
    assert (points.shape, points.dtype) == ((3, 5, 3), torch.float32)
    assert weights.sum(1).tolist() == [2, 5, 0]
    for cloud, found, weight in zip(clouds, points, weights, strict=True):
        assert torch.equal(found[weight == 1], cloud.float())
        assert not found[weight == 0].any()


def test_there_is_room_for_a_point_even_if_there_is_none():
    assert PaddedClouds.of([torch.zeros(0, 3)]).points.shape == (1, 1, 3)
    assert PaddedClouds.of([]).points.shape == (0, 1, 3)


def test_parts_are_the_whole():
    whole = PaddedClouds.of([torch.randn(count, 3) for count in range(1, 6)])
    parts = list(whole.split(2))
    assert [len(part.points) for part in parts] == [2, 2, 1]
    for entry, pieces in zip(whole, zip(*parts, strict=True), strict=True):
        assert torch.equal(entry, torch.cat(pieces))
