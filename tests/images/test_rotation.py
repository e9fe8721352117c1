import pytest
import torch

from equicaps.images import rotate


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
    assert padded[..., :1, :].abs().max() == 0


def test_each_image_is_rotated_by_its_own_angle():
    images = torch.rand(1, 1, 8, 8).expand(2, 1, 8, 8)
    turned = rotate(images, torch.tensor([0.0, 90.0]))
    assert (turned[0] - turned[1]).abs().max() > 0.1
