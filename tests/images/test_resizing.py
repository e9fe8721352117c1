import pytest
import torch
from torch.nn import functional as F

from equicaps.images import resizing
from equicaps.images.preparation import square
from equicaps.images.resizing import as_floats, resized

SHAPES = [(50, 50), (41, 30), (30, 41), (9, 20), (28, 27), (1, 1), (1, 70), (97, 96)]


def with_torch(images, side):
    """The obvious way: pad, then resize all at once."""
    padded = square(as_floats(images)).double()
    return F.interpolate(padded, (side, side), mode="bilinear", antialias=True, align_corners=False).float()


@pytest.mark.parametrize("at_once", [1, 100, 2**20])
@pytest.mark.parametrize("shape", SHAPES)
def test_strips_give_what_torch_gives_for_the_padded_image(shape, at_once, monkeypatch):
    monkeypatch.setattr(resizing, "AT_ONCE", at_once)
    images = torch.randint(256, (2, 3, *shape), dtype=torch.uint8)
    for side in (8, 31, 32, 64):
        torch.testing.assert_close(resized(images, side), with_torch(images, side), rtol=0, atol=1e-6)
        torch.testing.assert_close(resized(as_floats(images), side), resized(images, side), rtol=0, atol=1e-7)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_quarter_turn_before_is_one_after(shape):
    images = torch.rand(1, 1, *shape)
    for quarters in (1, 2, 3):
        rotated = resized(torch.rot90(images, quarters, (-2, -1)), 24)
        torch.testing.assert_close(rotated, torch.rot90(resized(images, 24), quarters, (-2, -1)), rtol=0, atol=1e-7)


def test_a_long_thin_image_is_never_padded_in_full():
    """As a square it would have 3.6 billion pixels."""
    line = torch.rand(1, 1, 1, 60_000)
    found = resized(line, 32)
    assert found.shape == (1, 1, 32, 32)
    colour = line.median()
    torch.testing.assert_close(found[0, 0, :15], colour.expand(15, 32))
    assert (found - colour).abs().max() < 1e-3


def test_images_of_the_right_size_are_not_resampled():
    images = torch.rand(2, 3, 17, 17)
    assert torch.equal(resized(images, 17), images)


def test_no_image_is_no_error():
    assert resized(torch.zeros(0, 1, 40, 40), 32).shape == (0, 1, 32, 32)
