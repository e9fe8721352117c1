"""Views of shapes: new points in every step, never rotated."""

import pytest
import torch

from equicaps.data import solid_shapes
from equicaps.training.shape_views import ShapeViews


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_same_seed_gives_the_same_views():
    surfaces = solid_shapes(5).surfaces
    one, same, other = (ShapeViews(50, jitter=0.1)(surfaces, generator(seed))[0] for seed in (0, 0, 1))
    assert one.shape == (5, 50, 3)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_views_are_stretched_along_the_axes_and_nothing_else():
    """Without changes they are the points of the surface; stretched, each axis has a factor of its own, in bounds."""
    surfaces = solid_shapes(5).surfaces
    plain, degrees = ShapeViews(50, stretch=0.0)(surfaces, generator())
    assert torch.equal(plain, surfaces.sample(50, generator()))
    assert (degrees == 0).all()
    factors = ShapeViews(50, stretch=0.2)(surfaces, generator())[0] / plain
    assert ((factors >= 0.8) & (factors <= 1.2)).all()
    torch.testing.assert_close(factors, factors[:, :1].expand_as(factors))
    assert factors[:, 0].std(-1).min() > 1e-3


def test_jitter_moves_every_point():
    surfaces = solid_shapes(5).surfaces
    moved = ShapeViews(400, stretch=0.0, jitter=0.05)(surfaces, generator())[0]
    noise = moved - ShapeViews(400, stretch=0.0)(surfaces, generator())[0]
    assert 0.045 < noise.std() < 0.055


@pytest.mark.parametrize("wrong", [{"points": 0}, {"stretch": 1.0}, {"stretch": -0.1}, {"jitter": -1.0}])
def test_mistakes_are_explained(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ShapeViews(**wrong)
