import pytest
import torch
from small_training import ROTATED, digits

from equicaps.data import Cloud, Shapes, Surfaces
from equicaps.training.sampler import Sampler
from equicaps.training.shape_views import ShapeViews


def sampler(images=7, seed=0, views=2):
    return Sampler(digits(), ROTATED, images=images, views=views, seed=seed)


def test_every_image_comes_once_in_an_epoch_also_across_batches():
    """40 images in batches of 7: in 40 batches every image occurs 7 times, once in each epoch of 40."""
    stream = torch.cat([sampler().indices(step) for step in range(40)])
    assert len(stream) == 280
    for epoch in stream.split(40):
        assert sorted(epoch.tolist()) == list(range(40))


def test_epochs_have_different_orders():
    stream = torch.cat([sampler(images=40).indices(step) for step in range(2)])
    assert not torch.equal(*stream.split(40))


def test_a_batch_may_be_larger_than_the_data():
    assert torch.bincount(sampler(images=90).indices(0)).tolist().count(2) >= 30


def test_a_batch_is_a_function_of_seed_and_step_alone():
    """Whatever was drawn before, from this sampler or from torch's own generator."""
    used = sampler()
    for step in range(9):
        used.batch(step)
    torch.manual_seed(77)
    for one, two in zip(used.batch(5)[:3], sampler().batch(5)[:3], strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("changes", [{"seed": 1}, {"step": 6}])
def test_another_seed_or_step_is_another_batch(changes):
    """Control."""
    other = sampler(seed=changes.get("seed", 0)).batch(changes.get("step", 5))
    assert not torch.equal(other.degrees, sampler().batch(5).degrees)
    assert not torch.equal(other.labels, sampler().batch(5).labels)


def test_halves_show_the_same_images_rotated_differently():
    batch = sampler().batch(3)
    first, second = batch.labels.chunk(2)
    assert torch.equal(first, second)
    assert not torch.equal(*batch.degrees.chunk(2))


@pytest.mark.parametrize("views", [1, 2])
def test_parts_of_all_processes_are_the_batch(views):
    """Each part has both views of its images, and together they are the whole."""
    whole = sampler(images=8, views=views).batch(2)
    parts = [whole.part(rank, 4, views) for rank in range(4)]
    together = torch.cat([part.degrees.view(views, -1) for part in parts], 1)
    assert torch.equal(together.flatten(), whole.degrees)
    for part in parts:
        assert len(set(map(tuple, part.labels.view(views, -1).tolist()))) == 1
        assert len(part.inputs) == 1


def test_weights_of_points_stay_with_their_clouds():
    """Cloud number i has i points."""
    clouds = [Cloud(torch.full((count, 3), float(count))) for count in range(1, 9)]
    data = Shapes("clouds", Surfaces(clouds), torch.arange(8), tuple("abcdefgh"))
    whole = Sampler(data, ShapeViews(stretch=0.0), images=8, views=2, seed=0).batch(0)
    for batch in (whole, whole.part(1, 2, 2)):
        points, weights = batch.inputs
        assert weights.sum(1).tolist() == (batch.labels + 1).tolist() == points[:, 0, 0].tolist()
    assert len(batch.labels) == 8
