import pytest
import torch

from equicaps.data import Dataset, embedded_digits, regenerate_affnist, regenerate_mnist_rot
from equicaps.data.dataset import DIGITS
from equicaps.errors import UsageError
from equicaps.images import rotate

COUNTS = (40, 20, 60)


@pytest.fixture(scope="module")
def numbered():
    """Two sets whose images say which digit they are: a grey level of their own, the same at every angle."""
    grey = torch.arange(1, 131) / 131
    images = grey[:, None, None, None].expand(130, 1, 28, 28)
    labels = torch.arange(130) % 10
    return Dataset("first", images[:80], labels[:80], DIGITS), Dataset("second", images[80:], labels[80:], DIGITS)


def sources(data):
    return (data.images[:, 0, 14, 14] * 131).round().long()


def test_mnist_rot_has_no_digit_in_two_splits(numbered):
    """10k/2k/50k in small: disjoint, from both halves of MNIST, each with its own label."""
    splits = [regenerate_mnist_rot(split, *numbered, counts=COUNTS) for split in ("train", "valid", "test")]
    assert [len(data) for data in splits] == list(COUNTS)
    every = torch.cat([sources(data) for data in splits])
    assert len(every.unique()) == sum(COUNTS)
    assert any(sources(splits[0]) <= 80)
    assert any(sources(splits[0]) > 80)
    for data in splits:
        assert torch.equal(data.labels, (sources(data) - 1) % 10)


def test_mnist_rot_digits_are_rotated_bicubically_and_clipped():
    train, test = embedded_digits("train").take(slice(100)), embedded_digits("test").take(slice(30))
    data = regenerate_mnist_rot("valid", train, test, counts=COUNTS)
    assert data.images.shape == (20, 1, 28, 28)
    assert data.images.min() == 0
    assert data.images.max() == 1
    generator = torch.Generator().manual_seed(0)
    chosen, degrees = torch.randperm(130, generator=generator)[40:60], torch.rand(120, generator=generator)[40:60] * 360
    pool = torch.cat((train.images, test.images))[chosen]
    assert torch.equal(data.images, rotate(pool, degrees, interpolation="bicubic"))
    assert (data.images - rotate(pool, degrees)).abs().max() > 0.05


def test_mnist_rot_from_too_few_digits_is_refused(numbered):
    with pytest.raises(UsageError, match=r"62000 different digits are needed, but 130 were given"):
        regenerate_mnist_rot("train", *numbered)


def test_affnist_test_images_come_from_test_digits_only():
    train, test = embedded_digits("train").take(slice(60)), embedded_digits("test").take(slice(30))
    for split, source in (("test", test), ("valid", train.take(slice(50, None))), ("train", train.take(slice(50)))):
        data = regenerate_affnist(split, train, test, copies=3)
        assert data.images.shape == (3 * len(source), 1, 40, 40)
        assert torch.equal(data.labels, source.labels.repeat(3))
        # Ink grows with the area, which is at most 1.2 x 1.2; the order of the digits is kept.
        ratio = data.images.sum((1, 2, 3)) / source.images.sum((1, 2, 3)).repeat(3)
        assert ratio.min() > 0.8**2 - 0.05
        assert ratio.max() < 1.2**2 + 0.05
    assert not torch.equal(data.images[:50], data.images[50:100])


@pytest.mark.parametrize("make", [regenerate_affnist, regenerate_mnist_rot])
def test_regenerated_sets_say_so_and_repeat_with_the_seed(make):
    train, test = embedded_digits("train").take(slice(60)), embedded_digits("test").take(slice(30))
    options = {} if make is regenerate_affnist else {"counts": (20, 20, 20)}
    data, again, other = (make("test", train, test, seed=seed, **options) for seed in (3, 3, 4))
    assert "(regenerated, seed 3, test)" in data.name
    assert torch.equal(data.images, again.images)
    assert not torch.equal(data.images, other.images)


def test_the_splits_of_affnist_are_transformed_differently():
    """The same digits in two splits give different views, so that a network cannot learn the test's transformations."""
    digits = embedded_digits("test").take(slice(30))
    train, test = (regenerate_affnist(split, digits, digits.take(slice(25))).images for split in ("train", "test"))
    assert len(train) == len(test) == 25
    assert (train - test).abs().amax((1, 2, 3)).min() > 0.1
