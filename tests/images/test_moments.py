import pytest
import torch

from equicaps.images import rotate
from equicaps.images.moments import angle_difference, angle_distance, centroid, principal_axis

ANGLES = torch.tensor([0.0, 20.0, 45.0, 90.0, 110.0, 170.0])


def bars(degrees):
    """A bar along the x axis, off centre and brighter on one side, rotated."""
    bar = torch.zeros(1, 1, 64, 64)
    bar[..., 30:34, 14:42] = torch.linspace(0.4, 1.0, 28)
    return rotate(bar.expand(len(degrees), -1, -1, -1), degrees)[:, 0]


def test_the_axis_of_a_bar_is_the_angle_by_which_it_was_rotated():
    found = principal_axis(bars(ANGLES))
    assert angle_difference(found.degrees, ANGLES, 180).abs().max() < 0.5
    assert (found.degrees >= 0).all()
    assert (found.degrees < 180).all()
    assert found.roundness.max() < 0.2


def test_that_comparison_rejects_other_angles():
    """Control: the opposite rotation is not accepted."""
    assert angle_difference(principal_axis(bars(ANGLES)).degrees, -ANGLES, 180).abs().max() > 30


def test_the_axis_rotates_with_the_image_exactly_under_quarter_turns(dtype):
    images = bars(ANGLES).to(dtype)
    before, after = principal_axis(images), principal_axis(torch.rot90(images, 1, (-2, -1)))
    assert angle_difference(after.degrees, before.degrees + 90, 180).abs().max() < 1e-4
    torch.testing.assert_close(after.roundness, before.roundness)


def test_faint_pixels_do_not_count():
    """A faint second source affects the axis only below the threshold."""
    image = bars(torch.zeros(1))
    image[:, 2:6, 14:40] = 0.04
    assert angle_difference(principal_axis(image).degrees, torch.zeros(1), 180).abs() < 0.5
    assert principal_axis(image, threshold=0.0).roundness > 0.3


def test_round_images_have_roundness_1_and_black_images_are_nan():
    disc = (torch.hypot(*torch.meshgrid(*[torch.arange(33.0) - 16] * 2, indexing="ij")) < 9).float()
    point, black = torch.zeros(2, 33, 33)
    point[16, 16] = 1
    found = principal_axis(torch.stack((disc, point, black)))
    assert found.roundness[:2].tolist() == pytest.approx([1.0, 1.0], abs=1e-3)
    assert found.roundness[2].isnan()
    assert found.degrees[2].isnan()


@pytest.mark.parametrize(("first", "second", "difference"), [(10, 170, 20), (170, 10, -20), (0, 180, 0), (350, 5, -15)])
def test_opposite_directions_are_one_axis(first, second, difference):
    assert angle_difference(torch.tensor([float(first)]), torch.tensor([float(second)]), 180).item() == difference


def test_the_centroid_is_where_the_light_is():
    """The bar lies left of the centre: 180 degrees plus its rotation; black images have no direction."""
    found = centroid(bars(ANGLES))
    assert angle_difference(found.degrees, ANGLES + 180).abs().max() < 1
    assert angle_difference(found.degrees, ANGLES).abs().min() > 170  # control
    assert found.distance.tolist() == pytest.approx([2.2] * len(ANGLES), abs=0.3)
    assert centroid(torch.zeros(1, 8, 8)).degrees.isnan().all()


def test_the_axis_does_not_depend_on_the_place_in_the_image():
    """A horizontal bar far below the centre is still horizontal."""
    image = torch.zeros(1, 64, 64)
    image[:, 50:54, 40:60] = 1
    assert angle_difference(principal_axis(image).degrees, torch.zeros(1), 180).abs() < 1e-3


def test_half_a_period_is_the_lower_end_of_the_interval():
    """[-period / 2, period / 2)."""
    degrees = torch.tensor([90.0, -90.0, 270.0])
    assert angle_difference(degrees, torch.zeros(3), 180).tolist() == [-90.0] * 3
    assert angle_difference(2 * degrees, torch.zeros(3)).tolist() == [-180.0] * 3


def test_the_distance_of_angles_is_that_to_the_nearest_of_all_that_look_the_same():
    """Against a plain loop over angles that differ by periods; a distance that knows no period is another."""
    a, b = 1000 * torch.rand(2, 300, generator=torch.Generator().manual_seed(0)) - 500
    period = torch.tensor([360.0, 180.0, 120.0, 90.0, 72.0, 60.0]).repeat(50)
    found = angle_distance(a, b, period)
    for place, (first, second, step) in enumerate(zip(a.tolist(), b.tolist(), period.tolist(), strict=True)):
        nearest = min(abs(first - second + turn * step) for turn in range(-20, 21))
        assert found[place].item() == pytest.approx(nearest, abs=1e-3)
    assert (found >= 0).all()
    assert (found <= period / 2).all()
    torch.testing.assert_close(angle_distance(a, b), angle_distance(a, b, torch.full_like(a, 360.0)))
    assert (angle_distance(a, b) - found).abs().max() > 90  # control
    assert torch.equal(angle_distance(a, torch.stack((b, a)), period)[0], found)


def test_what_has_no_angle_is_at_no_distance():
    """NaN without an angle, and modulo a period of 0, which something round has."""
    a, period = torch.tensor([torch.nan, 5.0, 5.0]), torch.tensor([360.0, 0.0, 360.0])
    assert angle_distance(a, torch.zeros(3), period).isnan().tolist() == [True, True, False]
