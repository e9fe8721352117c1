import math

import pytest
import torch

from equicaps.functional.image_poses import gradient_taps, image_poses

METHODS = [("sobel", 1.0), ("gaussian", 1.0), ("gaussian", 1.7)]
SOBEL = [[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]


def turn_plane(vectors, quarters):
    """Vectors (..., 2) rotated counter-clockwise by 90 degrees, several times."""
    for _ in range(quarters % 4):
        x, y = vectors.unbind(-1)
        vectors = torch.stack((-y, x), -1)
    return vectors


def test_sobel_equals_plain_loops(dtype, tolerance):
    """The 3x3 operator as loops, borders repeated, y up."""
    image = torch.rand(5, 6, dtype=dtype)
    capsules = image_poses(image[None, None], gradient_taps("sobel"))
    for row in range(5):
        for column in range(6):
            x = y = 0.0
            for i in range(3):
                for j in range(3):
                    pixel = image[min(max(row + i - 1, 0), 4), min(max(column + j - 1, 0), 5)].item()
                    x += SOBEL[i][j] * pixel / 8
                    y -= SOBEL[j][i] * pixel / 8
            length = math.hypot(x, y)
            expected = torch.tensor([x / length, y / length], dtype=dtype)
            torch.testing.assert_close(capsules.poses[0, 0, row, column], expected, **tolerance)
            assert capsules.activations[0, 0, row, column].item() == pytest.approx(length, rel=1e-5)


@pytest.mark.parametrize(("method", "sigma"), METHODS)
def test_gradient_of_a_ramp_is_its_slope(method, sigma, dtype, tolerance):
    """f = (3 x + 4 y) / 100 has the gradient (3, 4) / 100, away from the border; y points up."""
    y, x = torch.meshgrid(torch.arange(16.0, dtype=dtype).flip(0), torch.arange(16.0, dtype=dtype), indexing="ij")
    capsules = image_poses(((3 * x + 4 * y) / 100)[None, None], gradient_taps(method, sigma))
    inside = slice(6, -6)
    expected = torch.tensor([0.6, 0.8], dtype=dtype).expand(4, 4, 2)
    torch.testing.assert_close(capsules.poses[0, 0, inside, inside], expected, **tolerance)
    expected = torch.full((4, 4), 0.05, dtype=dtype)
    torch.testing.assert_close(capsules.activations[0, 0, inside, inside], expected, **tolerance)


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize(("method", "sigma"), METHODS)
def test_poses_turn_with_the_image_to_the_bit(method, sigma, quarters, dtype):
    """poses(rot90(x)) = i · rot90(poses(x)), activations(rot90(x)) = rot90(activations(x)): no tolerance."""
    images = torch.rand(2, 3, 7, 9, dtype=dtype)
    taps = gradient_taps(method, sigma)
    still = image_poses(images, taps)
    moved = image_poses(torch.rot90(images, quarters, (-2, -1)), taps)
    expected = torch.rot90(still.poses, quarters, (2, 3))
    assert torch.equal(moved.poses, turn_plane(expected, quarters))
    assert torch.equal(moved.activations, torch.rot90(still.activations, quarters, (2, 3)))
    assert not torch.equal(moved.poses, expected), "control: poses do turn"
    assert not torch.equal(moved.poses, turn_plane(expected, -quarters)) or quarters == 2, "control: the other way"


@pytest.mark.parametrize(("method", "sigma"), METHODS)
def test_constant_images_have_no_pose_and_finite_gradients(method, sigma, dtype):
    """Zero gradient: zero pose, zero activation, also on the border."""
    images = torch.full((1, 1, 6, 6), 0.7, dtype=dtype, requires_grad=True)
    capsules = image_poses(images, gradient_taps(method, sigma))
    assert (capsules.poses == 0).all()
    assert (capsules.activations == 0).all()
    (capsules.poses.sum() + capsules.activations.sum()).backward()
    assert images.grad.isfinite().all()


def test_one_grey_level_is_a_direction(dtype):
    """The floor lies below one step of an 8-bit image."""
    images = torch.zeros(1, 1, 4, 4, dtype=dtype)
    images[..., 2:] = 1 / 255
    poses = image_poses(images, gradient_taps("sobel")).poses[0, 0, :, 1]
    torch.testing.assert_close(poses, torch.tensor([1.0, 0.0], dtype=dtype).expand(4, 2))


def test_gradients_are_correct():
    images = torch.rand(1, 1, 4, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: image_poses(x, gradient_taps("gaussian", 0.8)), (images,))


def test_poses_are_planes_in_memory():
    """x and y of all poses are contiguous planes."""
    poses = image_poses(torch.rand(2, 3, 4, 5), gradient_taps("sobel")).poses
    assert all(plane[0].is_contiguous() for plane in poses.unbind(-1))


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("method", "sigma", "message"), [("prewitt", 1.0, "method"), ("gaussian", 0.0, "sigma")])
def test_bad_choices_are_explained(plain, method, sigma, message):
    with pytest.raises(ValueError, match=f"`{message}` must be"):
        plain.functional.gradient_taps(method, sigma)
