import math
from dataclasses import replace

import pytest
import torch

from equicaps.data import Dataset
from equicaps.errors import UsageError


def make(labels, classes=("a", "b")):
    return Dataset("letters", torch.rand(3, 1, 4, 5), torch.tensor(labels), classes)


def test_take_keeps_name_and_classes():
    data = make([0, 1, 1])
    for which in (slice(1, None), [1, 2], torch.tensor([1, 2])):
        part = data.take(which)
        assert len(part) == 2
        assert part.labels.tolist() == [1, 1]
        assert (part.name, part.classes) == ("letters", ("a", "b"))
        assert torch.equal(part.images, data.images[1:])
    assert repr(data) == "Dataset('letters', 3 x 1 x 4 x 5, 2 classes)"


ORDERS = {"sorted": torch.arange(40) // 10, "in turns": torch.arange(40) % 4}


@pytest.mark.parametrize("count", [10, 20, 39])
@pytest.mark.parametrize("labels", ORDERS.values(), ids=ORDERS)
def test_some_images_show_every_class_whatever_the_order(labels, count):
    data = Dataset("letters", torch.rand(40, 1, 4, 5), labels, tuple("abcd"))
    some = data.some(count)
    assert torch.bincount(some.labels, minlength=4).min() >= count // 10
    places = [(data.images == image).flatten(1).all(1).nonzero().item() for image in some.images]
    assert len(places) == count
    assert places == sorted(set(places))  # none twice
    assert torch.equal(data.some(count).images, some.images)


def test_the_first_and_every_fourth_would_not():
    """Control for the test above: each of the simple choices misses classes in one of the orders."""
    assert set(ORDERS["sorted"][:10].tolist()) == set(ORDERS["in turns"][::4].tolist()) == {0}


def test_some_of_few_are_all():
    data = make([0, 1, 1])
    assert len(data.some(None)) == len(data.some(3)) == len(data.some(99)) == 3
    with pytest.raises(ValueError, match="at least 1"):
        data.some(0)


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1]])
def test_labels_outside_the_classes_are_refused(labels):
    with pytest.raises(UsageError, match=r"letters: labels must be 0 to 1 \(there are 2 classes\), but range from"):
        make(labels)


def test_missing_labels_are_refused(without_shape_checks):
    with pytest.raises(UsageError, match="3 images, but 2 labels"):
        make([0, 1])


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_pixels_that_are_not_numbers_are_refused_by_their_image(value, dtype):
    images = torch.rand(5, 2, 4, 5, dtype=dtype)
    images[3, 1, 2, 2] = images[4, 0, 0, 0] = value
    with pytest.raises(UsageError, match=r"letters: pixels must be finite, but 2 of 5 images .* first at position 3"):
        Dataset("letters", images, torch.zeros(5, dtype=torch.long), ("a",))


def test_an_empty_set_and_values_beyond_1_are_allowed():
    assert len(Dataset("none", torch.zeros(0, 1, 4, 4), torch.zeros(0, dtype=torch.long), ("a",))) == 0
    data = Dataset("bytes", torch.tensor([-3.0, 255.0]).view(2, 1, 1, 1), torch.zeros(2, dtype=torch.long), ("a",))
    assert data.value_range() == (-3.0, 255.0)


def test_balancing_repeats_the_rarer_classes():
    data = Dataset("few", torch.arange(6.0).reshape(6, 1, 1, 1) / 6, torch.tensor([1, 1, 1, 1, 1, 0]), ("a", "b", "c"))
    balanced = data.balanced()
    assert balanced.labels.bincount().tolist() == [5, 5]
    assert balanced.name == "few, classes balanced by repetition"
    assert torch.equal(balanced.images[balanced.labels == 1], data.images[:5])
    assert (balanced.images[balanced.labels == 0] == data.images[5]).all()


def test_balancing_repeats_no_image_beyond_the_largest_class():
    """Two images in a class of three: one of them twice, not both."""
    data = Dataset("few", torch.rand(5, 1, 1, 1), torch.tensor([0, 0, 0, 1, 1]), ("a", "b"))
    assert data.balanced().labels.bincount().tolist() == [3, 3]


def uneven(*sizes):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    images = torch.arange(float(len(labels))).view(-1, 1, 1, 1) / len(labels)
    return Dataset("uneven", images, labels, tuple(map(str, range(len(sizes)))))


def test_classes_are_evened_out_to_the_geometric_mean_with_the_largest():
    data = uneven(100, 25, 1, 0)
    evened = data.balanced(0.5)
    assert evened.class_sizes() == [100, 50, 10, 0]
    assert evened.name == "uneven, classes evened out by repetition"
    assert set(evened.images.flatten().tolist()) == set(data.images.flatten().tolist())  # none is lost
    assert data.balanced(0.0).class_sizes() == data.class_sizes()


def test_repeated_images_count_once_among_the_different_ones():
    """Also in parts of a set, and if it is balanced twice."""
    data = uneven(10, 4, 1)
    assert data.different == len(data) == 15
    for part in (data.balanced(), data.balanced(0.5), data.balanced(0.5).balanced()):
        assert part.different == 15 < len(part)
        assert f"{len(part)} x 1 x 1 x 1, 15 of them different, 3 classes" in repr(part)
        assert part.different == len(part.images.unique())
    rare = data.balanced().take(slice(8, None))
    assert len(rare) == 22
    assert rare.different == len(rare.images.unique()) == 2 + 4 + 1
    assert "different" not in repr(data)


def test_repeated_images_are_taken_once():
    """In the order that they had; also of a part of a balanced set, and if nothing is repeated."""
    data = uneven(10, 4, 1)
    for repeated in (data.balanced(), data.balanced(0.5).balanced()):
        assert len(repeated) > 15
        for name in ("images", "labels"):
            assert torch.equal(getattr(repeated.once(), name), getattr(data, name))
    rare = data.balanced().take(slice(8, None))
    assert rare.once().images.flatten().tolist() == rare.images.unique().tolist()
    assert data.once() is data


def test_balancing_what_is_balanced_repeats_no_image():
    even = uneven(3, 3).balanced()
    assert even.different == len(even) == 6


@pytest.mark.parametrize(("count", "held"), [(20, [18, 1, 1, 0]), (3, [3, 0, 0, 0])])
def test_every_class_that_can_spare_an_image_gives_one(count, held):
    rest, back = uneven(190, 10, 5, 4).hold_back(count)
    assert back.class_sizes() == held
    assert [kept + given for kept, given in zip(rest.class_sizes(), held, strict=True)] == [190, 10, 5, 4]
    assert not set(rest.images.flatten().tolist()) & set(back.images.flatten().tolist())


def test_known_angles_stay_with_their_images():
    """In every part of a set; here the angle of an image is its brightness in degrees."""
    images = torch.arange(40.0).view(40, 1, 1, 1).expand(40, 1, 2, 2) / 40
    angles = torch.where(torch.arange(40) % 3 == 0, torch.arange(40.0), math.nan)
    data = Dataset("x", images, torch.arange(40) % 5 // 2, ("a", "b", "c"), angles=angles)
    rest, held = data.hold_back(10)
    for part in (data, data.take([5, 3, 0]), data.some(7), rest, held, data.balanced()):
        expected = (part.images[:, 0, 0, 0] * 40).round()
        assert torch.equal(part.known_angles, expected % 3 == 0)
        assert torch.equal(part.angles[part.known_angles], expected[part.known_angles])
    assert not replace(data, angles=None).known_angles.any()
    assert replace(data, angles=None).take([1]).angles is None


def test_impossible_angles_are_refused(without_shape_checks):
    images, labels = torch.zeros(2, 1, 2, 2), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(UsageError, match="the one at position 1 is -inf"):
        Dataset("x", images, labels, ("a",), angles=torch.tensor([math.nan, -math.inf]))
    with pytest.raises(UsageError, match="2 images, but 3 angles"):
        Dataset("x", images, labels, ("a",), angles=torch.zeros(3))


def test_some_images_of_each_class_are_spread_over_them():
    chosen = uneven(100, 7, 0, 30).some_of_each(10)
    assert chosen.class_sizes() == [10, 7, 0, 10]
    assert (chosen.images[:10].flatten() * 137).round().tolist() == list(range(0, 100, 10))
