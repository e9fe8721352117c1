import math
from itertools import pairwise

import pytest
import torch
from torch.nn import functional as F

from equicaps.data import embedded_digits
from equicaps.data.regenerated import AFFINE
from equicaps.images import ROTATED, TRANSLATED, UPRIGHT, Augmentation, augmentation, rotate
from equicaps.images.warp import warp
from equicaps.models.sizes import background

KINDS = ("bilinear", "bicubic", "mixed")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def digits():
    return embedded_digits("test").images[:50]


def test_upright_is_padding(digits):
    views, degrees = UPRIGHT(digits, seeded())
    torch.testing.assert_close(views, F.pad(digits, (2, 2, 2, 2)), rtol=1e-4, atol=1e-4)
    assert degrees.abs().max() == 0


def test_rotated_views_are_rotated_counter_clockwise_by_the_degrees_returned(digits):
    views, degrees = ROTATED(digits, seeded())
    torch.testing.assert_close(views, rotate(digits, degrees, 32), rtol=1e-4, atol=1e-4)
    assert (views - rotate(digits, -degrees, 32)).abs().max() > 0.5


def test_angles_are_uniform_over_the_whole_circle():
    _, degrees = ROTATED(torch.zeros(8000, 1, 2, 2), seeded())
    counts = torch.histc(degrees, 8, -180, 180)
    assert counts.sum() == 8000
    assert (counts - 1000).abs().max() < 4 * math.sqrt(1000)


def test_translated_digits_keep_every_pixel_at_every_position(digits):
    """The image lies at any of the 13 x 13 positions in whole pixels, so no value is lost or blurred."""
    views, degrees = TRANSLATED(digits, seeded())
    assert views.shape == (50, 1, 40, 40)
    assert degrees.abs().max() == 0
    torch.testing.assert_close(
        views.flatten(1).sort().values[:, -784:], digits.flatten(1).sort().values, rtol=1e-4, atol=1e-4
    )
    corners = torch.zeros(5000, 1, 28, 28)
    corners[:, :, 0, 0] = 1
    places = (TRANSLATED(corners, seeded()).images[:, 0] > 0.5).nonzero()
    assert len(places) == 5000
    for axis in (1, 2):
        counts = torch.bincount(places[:, axis])
        assert len(counts) == 13
        assert (counts - 5000 / 13).abs().max() < 4 * math.sqrt(5000 / 13)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_ink_stays_inside_and_reaches_every_side(digits, interpolation, monkeypatch):
    """On a larger canvas, the same maps put nothing outside the view; and some digits touch each side."""
    calls = []
    monkeypatch.setattr(augmentation, "warp", lambda *given: calls.append(given) or warp(*given))
    many = digits.repeat(8, 1, 1, 1)
    augment = Augmentation(40, rotation=20.0, shear=0.2, scale=(0.8, 1.2), placement="ink", interpolation=interpolation)
    views, _ = augment(many, seeded())
    [(_, back, shift, _, _)] = calls
    wide = warp(many, back, shift, 60, interpolation)
    torch.testing.assert_close(wide[..., 10:50, 10:50], views, rtol=1e-4, atol=1e-4)
    wide[..., 10:50, 10:50] = 0
    assert wide.abs().max() < 1e-4
    for edge in (views[..., :2, :], views[..., -2:, :], views[..., :2], views[..., -2:]):
        assert edge.amax() > 0.1


def test_ink_that_just_fits_is_not_cut():
    """Control for the test above: a square of 38 in 40 moves by at most a pixel, and one of 50 is centred."""
    on_black = F.pad(torch.ones(500, 1, 38, 38), (1, 1, 1, 1))
    views, _ = Augmentation(40, placement="ink")(on_black, seeded())
    torch.testing.assert_close(views.sum((1, 2, 3)), torch.full((500,), 38.0**2), rtol=1e-4, atol=0)
    assert views.std(0).amax() > 0.1
    too_large, _ = Augmentation(40, placement="ink")(torch.ones(2, 1, 50, 50), seeded())
    torch.testing.assert_close(too_large, torch.ones(2, 1, 40, 40))


def test_a_blank_image_stays_blank():
    assert AFFINE(torch.zeros(3, 1, 28, 28), seeded()).images.abs().max() == 0


def test_images_are_scaled_then_sheared_then_rotated():
    """A point at (x, y) moves to R(θ) (s_x x + k s_y y, s_y y), with y up."""
    augment = Augmentation(201, rotation=40.0, shear=0.5, scale=(1.0, 2.0))
    x, y = 20, 30
    images = torch.zeros(6, 1, 101, 101)
    images[..., 49 - y : 52 - y, 49 + x : 52 + x] = 1
    views, degrees = augment(images, seeded())
    drawn = torch.rand(6, 6, generator=seeded())
    angle, shear, (sx, sy) = torch.deg2rad(degrees), drawn[1] - 0.5, 1 + drawn[2:4]
    u, v = sx * x + shear * sy * y, sy * y
    expected = torch.stack((angle.cos() * u - angle.sin() * v, angle.sin() * u + angle.cos() * v), -1)
    axis = torch.arange(201.0) - 100
    weight = views[:, 0] / views.sum((1, 2, 3))[:, None, None]
    centre = torch.stack(((weight * axis).sum((1, 2)), -(weight * axis[:, None]).sum((1, 2))), -1)
    torch.testing.assert_close(centre, expected, rtol=0, atol=0.1)


def test_shift_moves_a_centred_image_by_up_to_that_much_along_both_axes():
    """The centre of mass of a square is uniform over [-3, 3] x [-3, 3], and independent along the axes."""
    images = torch.zeros(2000, 1, 28, 28)
    images[..., 12:16, 12:16] = 1
    views, degrees = Augmentation(32, shift=3.0)(images, seeded())
    axis = torch.arange(32.0) - 15.5
    weight = views[:, 0] / views.sum((1, 2, 3))[:, None, None]
    places = torch.stack(((weight * axis).sum((1, 2)), (weight * axis[:, None]).sum((1, 2))))
    assert degrees.abs().max() == 0
    assert places.abs().max() < 3.01
    for along in places:
        counts = torch.histc(along, 6, -3.01, 3.01)
        assert (counts - 2000 / 6).abs().max() < 4 * math.sqrt(2000 / 6)
    assert abs(torch.corrcoef(places)[0, 1]) < 0.1


def test_without_shift_a_centred_image_stays_centred():
    """Control for the test above."""
    views, _ = Augmentation(32)(torch.ones(3, 1, 4, 4), seeded())
    torch.testing.assert_close(views[..., 14:18, 14:18], torch.ones(3, 1, 4, 4), rtol=1e-4, atol=1e-4)


def test_settings_other_than_the_size_are_keyword_only():
    with pytest.raises(TypeError, match="positional argument"):
        Augmentation(40, 20.0)


def test_the_seed_decides(digits, dtype):
    augment, images = Augmentation(32, rotation=180.0, placement="ink"), digits.to(dtype)
    first, again, other = (augment(images, seeded(seed)) for seed in (1, 1, 2))
    assert first.images.dtype == dtype
    assert torch.equal(first.images, again.images)
    assert torch.equal(first.degrees, again.degrees)
    assert not torch.equal(first.degrees, other.degrees)


def test_views_of_colour_images_that_are_not_square():
    images = torch.rand(2, 3, 20, 30)
    views, _ = Augmentation(40)(images)
    torch.testing.assert_close(views[..., 10:30, 5:35], images, rtol=1e-4, atol=1e-4)
    views[..., 10:30, 5:35] = colour = background(images)
    torch.testing.assert_close(views, colour.expand_as(views))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"size": 0}, "size must be at least 1"),
        ({"size": 8, "rotation": 181.0}, "rotation must be 0 to 180"),
        ({"size": 8, "rotation": math.nan}, "rotation must be"),
        ({"size": 8, "shear": -0.1}, "shear must be 0 or more"),
        ({"size": 8, "shift": -1.0}, "shift must be 0 or more"),
        ({"size": 8, "shift": math.inf}, "shift must be 0 or more"),
        ({"size": 8, "scale": (0.0, 1.0)}, "scale must be"),
        ({"size": 8, "scale": (1.2, 1.0)}, "scale must be"),
    ],
)
def test_wrong_settings_are_explained(wrong, message):
    with pytest.raises(ValueError, match=message):
        Augmentation(**wrong)


def test_a_frame_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="at most 20x20, but they have 28x28"):
        Augmentation(20, placement="frame")(torch.zeros(1, 1, 28, 28))


def test_augmentations_with_one_seed_rotate_by_the_same_angles(digits):
    angles = [
        Augmentation(32, rotation=90.0, scale=scale, placement=placement)(digits, seeded()).degrees
        for scale, placement in (((1.0, 1.0), "centre"), ((0.5, 1.0), "ink"))
    ]
    assert all(torch.equal(one, other) for one, other in pairwise(angles))


def test_ink_of_every_colour_stays_inside():
    """A blue square that fills most of the image is not cut, although its red channel is black."""
    images = torch.zeros(200, 3, 30, 30)
    images[:, 2, 1:-1, 1:-1] = 1
    views, _ = Augmentation(32, placement="ink")(images, seeded())
    torch.testing.assert_close(views.sum((1, 2, 3)), torch.full((200,), 28.0**2), rtol=1e-4, atol=0)


def test_mixed_views_are_interpolated_in_one_of_two_ways(digits):
    """At random for each view; the angles are those of the other augmentations with the same seed."""
    views = {kind: Augmentation(32, rotation=180.0, interpolation=kind)(digits, seeded()) for kind in KINDS}
    same = {kind: (views[kind].images == views["mixed"].images).flatten(1).all(1) for kind in ("bilinear", "bicubic")}
    assert torch.equal(views["mixed"].degrees, views["bilinear"].degrees)
    assert torch.equal(same["bilinear"], ~same["bicubic"])
    assert 15 < same["bilinear"].sum() < 35
    again = Augmentation(32, rotation=180.0, interpolation="mixed")(digits, seeded())
    assert torch.equal(again.images, views["mixed"].images)


def test_a_single_image_can_be_mixed(digits):
    for seed in range(4):
        views, _ = Augmentation(32, interpolation="mixed")(digits[:1], seeded(seed))
        assert views.shape == (1, 1, 32, 32)


@pytest.mark.usefixtures("without_shape_checks")
def test_an_unknown_interpolation_is_refused():
    with pytest.raises(ValueError, match="interpolation"):
        Augmentation(32, interpolation="nearest")
