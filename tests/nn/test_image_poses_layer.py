import pytest
import torch

from equicaps.nn import ImagePoses


@pytest.mark.parametrize("method", ["sobel", "gaussian"])
def test_has_no_parameters_and_one_capsule_for_each_channel(method):
    layer = ImagePoses(method)
    capsules = layer(torch.rand(2, 3, 8, 6))
    assert not list(layer.parameters())
    assert capsules.poses.shape == (2, 3, 8, 6, 2)
    assert capsules.activations.shape == (2, 3, 8, 6)


def test_methods_differ():
    """Control: `method` and `sigma` reach the filter."""
    images = torch.rand(1, 1, 8, 8)
    sobel, one, two = (
        layer(images).activations for layer in (ImagePoses(), ImagePoses("gaussian"), ImagePoses("gaussian", 2.0))
    )
    assert not torch.allclose(sobel, one, atol=1e-3)
    assert not torch.allclose(one, two, atol=1e-3)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("images", "error", "message"),
    [
        (torch.zeros(1, 1, 4, 4, dtype=torch.uint8), TypeError, "convert it with `.float"),
        (torch.zeros(1, 4, 4), ValueError, "batch, channels, height, width"),
        (torch.zeros(1, 1, 0, 4), ValueError, "a channel and a pixel"),
    ],
)
def test_bad_images_are_explained(images, error, message):
    with pytest.raises(error, match=message):
        ImagePoses()(images)


def test_repr_shows_the_method():
    assert repr(ImagePoses("gaussian", 1.5)) == "ImagePoses('gaussian', sigma=1.5)"
    assert repr(ImagePoses()) == "ImagePoses('sobel')"
