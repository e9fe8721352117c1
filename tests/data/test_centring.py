import pytest
import roma
import torch

from equicaps.data import Mesh, solid_shapes
from equicaps.data.centring import centred

SHAPES = {
    "points": torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 3,
    "triangles": solid_shapes(3).surfaces[2].triangles.double() * 7 - 2,
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_centring_commutes_with_rotations_and_forgets_place_and_size(shape):
    """centred(s R x + t) = R centred(x)."""
    rotation = roma.random_rotmat(dtype=torch.float64)
    moved = 5.3 * shape @ rotation.T + torch.tensor([100.0, -3.0, 20.0])
    torch.testing.assert_close(centred(moved), centred(shape) @ rotation.T)
    with pytest.raises(AssertionError):  # control: it is not invariant
        torch.testing.assert_close(centred(moved), centred(shape))
    assert torch.linalg.vector_norm(centred(shape), dim=-1).max() == pytest.approx(1)


def test_the_middle_of_the_bounding_box_would_not():
    """Control for the test above: the usual choice of a centre depends on the axes."""
    shape, rotation = SHAPES["triangles"].reshape(-1, 3), roma.rotvec_to_rotmat(torch.tensor([0.3, 0.2, 0.9]).double())

    def boxed(points):
        return points - (points.amin(0) + points.amax(0)) / 2

    assert (boxed(shape @ rotation.T) - boxed(shape) @ rotation.T).abs().max() > 0.01


def test_the_centre_of_triangles_is_that_of_their_area():
    """However they are divided: here each triangle of one half into four."""
    shape = SHAPES["triangles"]
    a, b, c = shape[::2].unbind(1)
    d, e, f = (a + b) / 2, (b + c) / 2, (c + a) / 2
    parts = [torch.stack(corners, 1) for corners in ((a, d, f), (d, b, e), (f, e, c), (d, e, f))]
    divided = torch.cat((*parts, shape[1::2]))
    assert not torch.allclose(divided.mean((0, 1)), shape.mean((0, 1)), atol=1e-3)  # the mean of corners is another
    torch.testing.assert_close(centred(divided)[-1], centred(shape)[-1])
    points = Mesh(centred(shape)).sample(20_000, torch.Generator().manual_seed(0))
    assert points.mean(0).abs().max() < 0.02


def test_extremes_are_survived():
    point = torch.full((4, 3), 3.0, dtype=torch.float64)
    assert centred(point).abs().max() == 0
    small, large = (centred(SHAPES["points"] * factor) for factor in (1e-250, 1e250))
    torch.testing.assert_close(small, centred(SHAPES["points"]))
    torch.testing.assert_close(large, small)
    line = torch.tensor([[[0.0, 0, 0], [1, 0, 0], [2, 0, 0]]]).double()
    torch.testing.assert_close(centred(line)[0, :, 0], torch.tensor([-1.0, 0, 1]).double())
