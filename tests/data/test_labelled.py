import pytest
import torch

from equicaps.data.labelled import check_labels, held_places, spread_places
from equicaps.errors import UsageError


@pytest.mark.parametrize(("total", "count"), [(40, 10), (41, 7), (5, 5), (1000, 999)])
def test_one_place_of_each_stretch_is_taken(total, count):
    places = spread_places(total, count)
    stretches = [(number * total // count, (number + 1) * total // count) for number in range(count)]
    assert all(low <= place < high for place, (low, high) in zip(places.tolist(), stretches, strict=True))
    assert torch.equal(places, spread_places(total, count))


def test_places_within_stretches_vary():
    assert len(set((spread_places(400, 40) % 10).tolist())) > 5


def test_what_is_held_back_and_what_stays_are_all():
    labels = torch.arange(60) % 3
    rest, held = held_places(labels, 3, 15)
    assert sorted((*rest.tolist(), *held.tolist())) == list(range(60))
    assert labels[held].bincount().tolist() == [5, 5, 5]
    assert held.tolist() != sorted(range(0, 60, 4))
    assert [part.tolist() for part in held_places(labels[:0], 3, 15)] == [[], []]


def test_labels_are_checked_against_members_and_classes():
    check_labels("letters", "shapes", 2, torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(UsageError, match="letters: 3 shapes, but 2 labels"):
        check_labels("letters", "shapes", 3, torch.tensor([0, 1]), ("a", "b"))
    with pytest.raises(UsageError, match=r"labels must be 0 to 1 .* range from 0 to 2"):
        check_labels("letters", "shapes", 2, torch.tensor([0, 2]), ("a", "b"))
