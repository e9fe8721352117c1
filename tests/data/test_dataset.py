import pytest
import torch

from equicaps.data import Dataset


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


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, -1, 1]])
def test_labels_outside_the_classes_are_refused(labels):
    with pytest.raises(ValueError, match=r"letters: labels must be 0 to 1 \(there are 2 classes\), but reach from"):
        make(labels)


def test_missing_labels_are_refused(without_shape_checks):
    with pytest.raises(ValueError, match="3 images, but 2 labels"):
        make([0, 1])
