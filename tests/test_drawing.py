"""Arrows and wedges, found again in the pixels."""

import numpy as np
import pytest
from PIL import Image

from equicaps.drawing import AXES, NEAR, _camera, draw_pose, draw_shape


def redness(picture):
    """How red each pixel of the square is, without the caption."""
    pixels = np.asarray(picture, dtype=float)[: picture.width]
    return pixels[..., 0] - pixels[..., 2]


def towards(picture, degrees):
    """Whether there is colour in the direction of an angle counter-clockwise from the top, near the tip of an arrow."""
    centre, length = picture.width / 2, 0.38 * picture.width
    x, y = -np.sin(np.radians(degrees)), -np.cos(np.radians(degrees))
    return redness(picture)[round(centre + length * y), round(centre + length * x)] > 20


@pytest.mark.parametrize(("period", "arrows"), [(360.0, 1), (180.0, 2), (60.0, 6)])
def test_what_looks_the_same_has_an_arrow_for_each_position(period, arrows):
    drawn = draw_pose(Image.new("L", (256, 256)), 20.0, "", period=period)
    found = [degrees for degrees in range(20, 380, 30) if towards(drawn, degrees)]
    assert found == [20 + round(k * period) for k in range(arrows)]


def test_the_wedge_is_as_wide_as_the_error_and_lets_the_picture_shine_through():
    drawn = draw_pose(Image.new("L", (256, 256)), 90.0, "", error=25.0)
    assert all(towards(drawn, degrees) for degrees in (70, 80, 90, 100, 110))
    assert not any(towards(drawn, degrees) for degrees in (60, 120, 0, 180, 270))
    bright = draw_pose(Image.new("L", (256, 256), 255), 90.0, "", error=25.0)
    assert redness(bright).max() > redness(drawn)[128, 20] > 0
    assert (redness(draw_pose(Image.new("L", (256, 256)), None, "", error=25.0)) == 0).all()


def colour_of(picture, place):
    return tuple(int(value) for value in np.asarray(picture)[round(place[1]), round(place[0])])


def test_a_frame_is_drawn_where_its_axes_point():
    """The third axis of an upright shape points up in the picture; upside down it points down."""
    points = np.random.default_rng(0).normal(size=(50, 3))
    upright = draw_shape(points, np.eye(3).tolist(), "chair")
    turned = draw_shape(points, np.diag((1.0, -1.0, -1.0)).tolist(), "chair")
    up, down = (192, 192 - 60), (192, 192 + 60)
    assert colour_of(upright, up) == colour_of(turned, down) == AXES[2]
    assert colour_of(upright, down) != AXES[2] != colour_of(turned, up)
    found = {tuple(pixel) for pixel in np.asarray(upright).reshape(-1, 3).tolist()}
    assert set(AXES) <= found
    without = draw_shape(points, None, "")
    assert without.size == (384, 384)
    assert not set(AXES) & {tuple(pixel) for pixel in np.asarray(without).reshape(-1, 3).tolist()}


def test_near_points_are_darker_and_hide_far_ones():
    """Seen from above and one side, a point towards the eye is darker than its opposite."""
    eye = _camera()[2]
    drawn = np.asarray(draw_shape(np.stack((eye, -eye, 0.5 * _camera()[0])), None, ""))
    assert drawn[192 - 8 : 192 + 8, 150:230].min() <= NEAR + 2
    alone = np.asarray(draw_shape(np.stack((-eye, 3 * eye, 0.5 * _camera()[0])) * 0.5, None, ""))
    assert NEAR <= alone.min() < 255


def test_clouds_without_extent_and_long_captions_are_drawn():
    assert draw_shape(np.zeros((3, 3)), None, "").size == (384, 384)
    drawn = np.asarray(draw_shape(np.zeros((3, 3)), None, "a very long caption " * 8))
    assert (drawn[:, -4:] == 255).all()  # it does not reach the margin
    assert (drawn[384:] < 255).any()
