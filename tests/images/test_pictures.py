import numpy as np
import pytest
from PIL import Image

from equicaps.images.pictures import rotate_back


def spot(mode="L"):
    """A spot on the right of the centre."""
    picture = Image.new(mode, (41, 41))
    picture.paste(255, (33, 19, 36, 22))
    return picture


def direction(picture):
    """The angle of the light, counter-clockwise from the right."""
    values, axis = np.asarray(picture, dtype=float), np.arange(picture.width) - (picture.width - 1) / 2
    return np.degrees(np.arctan2(-(values * axis[:, None]).sum(), (values * axis).sum()))


@pytest.mark.parametrize("mode", ["L", "I;16", "1"])
@pytest.mark.parametrize("degrees", [30.0, 90.0, 130.0, -90.0, -20.0])
def test_pictures_are_rotated_back_clockwise_and_keep_their_mode(mode, degrees):
    back = rotate_back(spot(mode), degrees)
    assert back.mode == mode
    assert direction(back) == pytest.approx(-degrees, abs=2.5)


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_only_move_pixels(quarters):
    values = np.random.default_rng(0).integers(0, 256, (5, 8), dtype=np.uint8)
    back = rotate_back(Image.fromarray(values), 90.0 * quarters + 0.4, tolerance=0.5)
    assert np.array_equal(np.asarray(back), np.rot90(values, -quarters))


def test_remainders_beyond_the_tolerance_are_not_ignored():
    """Control for the test above."""
    values = np.asarray(spot())
    assert not np.array_equal(np.asarray(rotate_back(spot(), 20.0, tolerance=0.5)), values)


def test_the_corners_of_a_rotated_picture_show_a_colour_that_it_has():
    """The median of red, green and blue stripes is black in every channel; the nearest of them by value is blue."""
    values = np.eye(3, dtype=np.uint8)[np.arange(30) % 3][None].repeat(30, 0) * 255
    border = np.concatenate((values[0], values[-1], values[1:-1, 0], values[1:-1, -1]))
    assert np.median(border, axis=0).tolist() == [0, 0, 0]
    back = rotate_back(Image.fromarray(values), 45.0)
    assert back.getpixel((0, 0)) == back.getpixel((29, 29)) == (0, 0, 255)
