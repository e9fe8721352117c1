import pytest
import torch

from equicaps.data import Cloud, Shapes, Surfaces, solid_shapes
from equicaps.errors import UsageError
from equicaps.training.recipe import describe_data
from equicaps.training.sampler import Sampler


def make(count=12, classes=3):
    """Clouds of ten copies of one point, whose first coordinate is the number of the cloud."""
    clouds = Surfaces(Cloud(torch.tensor([[float(number), 0.0, 0.0]]).repeat(10, 1)) for number in range(count))
    return Shapes("things", clouds, torch.arange(count) % classes, tuple("abcdef"[:classes]), "made up")


def numbers(shapes):
    return shapes.sample(2)[:, 0, 0].long().tolist()


def test_surfaces_are_taken_one_by_one_or_several_at_once():
    surfaces = make().surfaces
    assert surfaces[3] is list(surfaces)[3]
    mask = (torch.arange(12) == 1) | (torch.arange(12) == 2)
    for which in (slice(1, 3), [1, 2], (1, 2), torch.tensor([1, 2]), mask, torch.tensor([-11, -10])):
        assert list(surfaces[which]) == [surfaces[1], surfaces[2]]
    assert (len(surfaces), repr(surfaces)) == (12, "Surfaces(12)")
    assert surfaces[:0].sample(5, torch.Generator()).shape == (0, 5, 3)


def test_take_keeps_name_classes_and_note():
    data = make()
    assert repr(data) == "Shapes('things', 12 shapes, 3 classes)"
    mask = torch.arange(12) // 2 == 2
    for which in (slice(4, 6), [4, 5], (4, 5), torch.tensor([4, 5]), mask):
        part = data.take(which)
        assert numbers(part) == [4, 5]
        assert part.labels.tolist() == [1, 2]
        assert (part.name, part.classes, part.note) == ("things", ("a", "b", "c"), "made up")


def test_points_depend_on_the_seed_alone():
    solids = solid_shapes(5)
    points = solids.sample(64)
    assert points.shape == (5, 64, 3)
    assert torch.equal(points, solids.sample(64))
    assert not torch.equal(points, solids.sample(64, seed=1))
    assert not torch.equal(points[0], points[1])


def test_clouds_without_other_points_are_known(without_shape_checks):
    surfaces = Surfaces([*make(1).surfaces, *solid_shapes(1).surfaces])
    assert [len(cloud) for cloud in surfaces.draw(20, torch.Generator())] == [10, 20]
    assert [len(cloud) for cloud in surfaces.draw(9, torch.Generator())] == [9, 9]
    assert surfaces.whole(20).tolist() == [True, False]
    assert surfaces.whole(9).tolist() == [False, False]


def test_some_and_held_back_are_spread_over_the_classes():
    data = make(60)
    some = data.some(10)
    assert len(some) == 10
    assert numbers(some) == sorted(set(numbers(some)))
    assert min(some.class_sizes()) > 0
    assert len(data.some(None)) == len(data.some(99)) == 60
    with pytest.raises(ValueError, match="at least 1, or None for all shapes"):
        data.some(0)
    rest, held = data.hold_back(15)
    assert held.class_sizes() == [5, 5, 5]
    assert sorted(numbers(rest) + numbers(held)) == list(range(60))


def test_wrong_labels_are_refused():
    surfaces = make(3).surfaces
    with pytest.raises(UsageError, match="3 shapes, but 2 labels"):
        Shapes("things", surfaces, torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(UsageError, match="labels must be 0 to 1"):
        Shapes("things", surfaces, torch.tensor([0, 1, 2]), ("a", "b"))


def test_a_sampler_takes_shapes_in_place_of_images(without_shape_checks):
    data = make()
    assert data.images is data.surfaces
    assert data.angles is None
    assert not data.known_angles.any()
    assert (len(data.known_angles), data.value_range(), data.different) == (12, (0.0, 1.0), 12)
    assert describe_data(data) == {"name": "things", "images": 12}
    views = Sampler(data, lambda chosen, generator: (chosen.sample(4, generator), torch.zeros(len(chosen))),
                    images=4, views=2, seed=0).batch(0)  # fmt: skip
    assert views.views.shape == (8, 4, 3)
    assert torch.equal(views.views[:, 0, 0].long() % 3, views.labels)
