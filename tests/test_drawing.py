"""Arrows and wedges, found again in the pixels."""

import numpy as np
import pytest
from PIL import Image

from equicaps.drawing import draw_pose


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
