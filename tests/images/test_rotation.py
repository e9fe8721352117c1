import pytest
import torch

from equicaps.images import rotate
from equicaps.models.sizes import background


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_quarter_turns_are_rot90(quarters, dtype):
    """rotate(90°) = torch.rot90(., 1): counter-clockwise, and not the other way."""
    images = torch.rand(3, 2, 9, 9, dtype=dtype)
    turned = rotate(images, torch.full((3,), 90.0 * quarters, dtype=dtype))
    torch.testing.assert_close(turned, torch.rot90(images, quarters, (-2, -1)), rtol=1e-4, atol=1e-4)
    if quarters in (1, 3):
        assert (turned - torch.rot90(images, -quarters, (-2, -1))).abs().max() > 0.1


def test_a_larger_size_pads_around_the_centre():
    image = torch.rand(1, 1, 28, 28)
    padded = rotate(image, torch.zeros(1), 32)
    torch.testing.assert_close(padded[..., 2:-2, 2:-2], image, rtol=1e-4, atol=1e-4)
    assert torch.equal(padded[..., :2, :], background(image).expand(1, 1, 2, 32))


def test_each_image_is_rotated_by_its_own_angle():
    images = torch.rand(1, 1, 8, 8).expand(2, 1, 8, 8)
    turned = rotate(images, torch.tensor([0.0, 90.0]))
    assert (turned[0] - turned[1]).abs().max() > 0.1


def test_angles_in_between_are_counter_clockwise_as_a_person_sees_the_image():
    """A spot on the right moves by 30 degrees to the upper right."""
    images = torch.zeros(1, 1, 41, 41)
    images[..., 19:22, 33:36] = 1  # 14 pixels to the right of the centre
    turned = rotate(images, torch.tensor([30.0]))[0, 0]
    axis = torch.arange(41.0) - 20
    x, y = ((turned * along).sum() / turned.sum() for along in (axis, -axis[:, None]))
    assert torch.rad2deg(torch.atan2(y, x)).item() == pytest.approx(30, abs=0.5)


def test_quarter_turns_are_exact_beside_other_angles():
    """Bit for bit, whatever else is in the batch."""
    images = torch.rand(2, 1, 9, 9)
    turned = rotate(images, torch.tensor([90.0, 30.0]))
    assert torch.equal(turned[0], torch.rot90(images[0], 1, (-2, -1)))
