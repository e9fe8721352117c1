"""Large uploads are shrunk some rows at a time, with the same result as all at once."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from equicaps.serve.pictures import LARGEST, read_upload


def encoded(picture, kind="PNG", **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def scene():
    """A grey scene that is smooth, without symmetry, and more than four times as wide as uploads become."""
    y, x = np.mgrid[0:1201, 0:2309] / 1201
    return (255 * (0.5 + 0.3 * np.sin(4 * x + y) + 0.2 * np.cos(7 * y * y))).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_a_large_upload_becomes_what_it_is_without_strips(scene, mode):
    picture = Image.fromarray(scene).convert(mode)
    found = read_upload(encoded(picture, "JPEG", quality=100))
    picture.thumbnail((LARGEST, LARGEST))
    expected = torch.from_numpy(np.array(picture.convert("L"))) / 255
    assert found.shape[1:] == expected.shape
    difference = (found - expected).abs()[:, 1:-1, 1:-1]  # at the border the last pixels have smaller blocks
    assert difference.max() < 0.02
    assert (found - expected.flip(0)).abs().max() > 0.2  # control: order matters


def test_a_large_upload_of_16_bits_keeps_its_shades(scene):
    found = read_upload(encoded(Image.fromarray(scene.astype(np.uint16) * 257)))
    assert torch.allclose(found, read_upload(encoded(Image.fromarray(scene))), atol=0.005)
    assert found.std() > 0.1


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1"])
def test_large_uploads_of_all_modes_are_read(scene, mode):
    """A white square: on a transparent ground, from a palette, and of single bits."""
    picture = Image.new("LA" if "A" in mode else "L", (2400, 2400))
    picture.paste((255, 255) if "A" in mode else 255, (600, 900, 1200, 1500))
    found = read_upload(encoded(picture.convert(mode)))
    assert found.shape == (1, LARGEST, LARGEST)
    assert found[0, 256, 192] == 1
    assert found.mean() == pytest.approx(1 / 16, abs=0.005)
