"""Clouds as people have them; every kind of input ends up as the same points."""

import numpy as np
import pytest
import torch
from small_shapes import SOLIDS, write_off

from equicaps.data import Cloud, Surfaces
from equicaps.errors import DamagedFileError, NotFoundError
from equicaps.inference.clouds import prepared, read_clouds
from equicaps.inference.point_card import MOST_POINTS

POINTS = SOLIDS.sample(50)[:3]


@pytest.mark.parametrize(
    "given", [POINTS, POINTS.numpy(), list(POINTS), [cloud.numpy() for cloud in POINTS], Surfaces(map(Cloud, POINTS))]
)
def test_points_are_taken_as_they_are(given):
    found = read_clouds(given, 64)
    torch.testing.assert_close(torch.stack(found), POINTS, rtol=0, atol=0)


def test_one_cloud_is_a_list_of_one():
    assert [len(cloud) for cloud in read_clouds(POINTS[0], 64)] == [50]
    assert [len(cloud) for cloud in read_clouds(Cloud(POINTS[0]), 20)] == [20]


def test_a_file_gives_the_same_points_whatever_it_is_read_with(tmp_path):
    files = [write_off(tmp_path / f"{number}.off", SOLIDS.surfaces[number].triangles) for number in range(2)]
    np.save(tmp_path / "few.npy", POINTS[0].numpy())
    [alone] = read_clouds(files[1], 64)
    first, second, few = read_clouds([str(files[0]), files[1], tmp_path / "few.npy"], 64)
    assert alone.shape == (64, 3)
    assert torch.equal(alone, second)
    assert not torch.equal(first, second)
    assert len(few) == 50  # fewer than would be drawn: all of them


def test_numbers_keep_their_precision_and_large_clouds_are_thinned():
    assert [cloud.dtype for cloud in read_clouds([POINTS[0].double(), POINTS[1]], 64)] == [torch.float64, torch.float32]
    assert read_clouds(np.arange(12).reshape(4, 3), 64)[0].dtype == torch.float64
    many = torch.randn(MOST_POINTS + 5, 3)
    [thinned] = read_clouds(many, 64)
    assert len(thinned) == MOST_POINTS
    torch.testing.assert_close(read_clouds(many + 1, 64)[0], thinned + 1)  # the same ones of a moved cloud


def test_clouds_anywhere_and_of_any_size_are_prepared_alike():
    here = prepared(POINTS[0])
    torch.testing.assert_close(prepared(1e4 * POINTS[0].double() + 1e9), here, rtol=0, atol=1e-9)
    with pytest.raises(AssertionError):  # control: float32 could not hold that
        torch.testing.assert_close(prepared((1e4 * POINTS[0].double() + 1e9).float()), here, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.zeros(4, 2), r"shape \(n, 3\), or \(batch, n, 3\) for several, but have shape \(4, 2\)"),
        (torch.zeros(2, 2, 4, 3), r"have shape \(2, 2, 4, 3\)"),
        ([torch.zeros(2, 4, 3)], r"one has shape \(2, 4, 3\)"),
        ([POINTS[0], torch.zeros(0, 3)], "cloud 2 has no points"),
        ([POINTS[0], torch.full((4, 3), torch.nan)], "cloud 2 has coordinates that are NaN or infinite"),
        (torch.full((4, 3), torch.inf), "cloud 1 has coordinates that are NaN"),
        (torch.zeros(4, 3, dtype=torch.bool), "real numbers"),
        (torch.zeros(4, 3, dtype=torch.complex64), "real numbers"),
    ],
)
def test_what_is_no_cloud_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        read_clouds(given, 64)


@pytest.mark.usefixtures("without_shape_checks")
def test_other_things_and_files_are_refused(tmp_path):
    with pytest.raises(TypeError, match="of type int"):
        read_clouds(5, 64)
    with pytest.raises(NotFoundError, match="does not exist"):
        read_clouds(tmp_path / "nothing.ply", 64)
    (tmp_path / "broken.ply").write_bytes(b"ply\n???")
    with pytest.raises(DamagedFileError, match=r"broken\.ply"):
        read_clouds(tmp_path / "broken.ply", 64)
