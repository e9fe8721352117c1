"""Views of shapes: new points in every step, never rotated."""

import numpy as np
import pytest
import torch
from small_shapes import SOLIDS, parts, point_model

from equicaps.data import Cloud, Surfaces, load_shapes_folder, solid_shapes
from equicaps.inference import PointCard, PointModel
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
    plain, degrees, _ = ShapeViews(50, stretch=0.0)(surfaces, generator())
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


@pytest.mark.parametrize("preset", ["points", "points-paper"])
def test_views_of_clouds_with_few_points_have_the_scores_of_predictions(preset):
    """Those of 300 points are neither repeated nor dropped, whatever they share a batch with."""
    network, content = parts(preset)
    model = PointModel(network, PointCard.of("solids", content))
    sizes = (300, 40, 1000)
    clouds = [Cloud(surface.sample(size, generator())) for surface, size in zip(SOLIDS.surfaces, sizes, strict=False)]
    views, _, weights = ShapeViews(1024, stretch=0.0)(Surfaces([*clouds, SOLIDS.surfaces[4]]), generator())
    assert views.shape == (4, 1024, 3)
    assert weights.sum(1).tolist() == [*sizes, 1024]
    found = model(views, weights).scores
    expected = model.predict([*(cloud.points for cloud in clouds), views[3]]).output.scores
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-3)
    repeated = torch.stack([cloud.sample(1024, generator()) for cloud in clouds])
    with pytest.raises(AssertionError):  # control: repeated points have other scores
        torch.testing.assert_close(model(repeated).scores, expected[:3], rtol=0, atol=1e-3)


def test_files_with_few_points_are_seen_as_they_are_predicted(tmp_path):
    """In training and in predictions, from XYZ and from NPY."""
    model, sizes = point_model(), (300, 299, 60, 20)
    for part, seed in (("train", 0), ("test", 1)):
        folder = tmp_path / part / "some"
        folder.mkdir(parents=True)
        for number, size in enumerate(sizes):
            points = SOLIDS.surfaces[number].sample(size, generator(seed)).numpy() * 20 + 7
            np.save(folder / f"{number}.npy", points) if number % 2 else np.savetxt(folder / f"{number}.xyz", points)
        (tmp_path / part / "other").mkdir()
        np.save(tmp_path / part / "other" / "one.npy", SOLIDS.surfaces[4].sample(500, generator(seed)).numpy())
    train = load_shapes_folder(tmp_path).train
    views, _, weights = ShapeViews(stretch=0.0)(train.surfaces, generator())
    assert sorted(weights.sum(1).tolist()) == sorted([*sizes, 500])
    files = sorted((tmp_path / "train" / "some").iterdir())
    some = (train.labels == train.classes.index("some")).nonzero().squeeze(1)
    expected = model.predict(files).output.scores
    torch.testing.assert_close(model(views, weights).scores[some], expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("wrong", [{"points": 0}, {"stretch": 1.0}, {"stretch": -0.1}, {"jitter": -1.0}])
def test_mistakes_are_explained(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ShapeViews(**wrong)
