"""The measurements of the benchmark of strangers' folders; its trainings take hours and are not repeated here."""

import sys
from pathlib import Path

import pytest
import torch

import equicaps
from equicaps.data import embedded_digits
from equicaps.images import rotate

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
strangers = pytest.importorskip("strangers")


def test_test_images_are_rotated_by_the_angles_that_are_kept():
    digits = embedded_digits("test").take(slice(0, 3))
    test = strangers.Test.of(digits, 32, seed=1, views=2)
    assert test.labels.tolist() == digits.labels.tolist() * 2
    for number, (image, degrees) in enumerate(zip(test.images, test.degrees, strict=True)):
        expected = rotate(digits.images[number % 3][None], degrees[None], 32)
        assert torch.equal(image[None], expected)
    assert not torch.equal(test.degrees, strangers.Test.of(digits, 32, seed=2, views=2).degrees)


def test_angles_of_upright_images_are_compared_with_those_they_were_rotated_by():
    """Of the shipped model, a few degrees; from other angles, far off."""
    model, digits = equicaps.load("digits"), embedded_digits("test").take(slice(0, 60))
    test = strangers.Test.of(digits, model.image_size)
    found = test.angle_error(model)
    assert found["angles_known"] > 50
    assert found["angle_error_median"] < 20
    others = strangers.Test(test.images, test.labels, test.degrees + 90)
    assert others.angle_error(model)["angle_error_median"] > 60


def test_the_interval_of_the_mean_over_classes_is_that_of_its_rarest_class():
    """Without errors it has no width; with few images of one class, theirs is most of it."""
    labels = torch.tensor([0] * 1000 + [1] * 10)
    assert strangers.balanced_interval(labels, labels) == (100, 100)
    answers = labels.clone()
    answers[-5:] = 0
    low, high = strangers.balanced_interval(answers, labels)
    assert 55 <= low <= 65
    assert 85 <= high <= 95
