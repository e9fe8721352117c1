"""Each protocol trains and tests on the images that the paper's does."""

from dataclasses import replace

import pytest
import torch

import equicaps
from equicaps.data import Dataset, embedded_digits
from equicaps.data.dataset import DIGITS
from equicaps.images import ROTATED, TRANSLATED, UPRIGHT
from equicaps.training import AnyAngle, AsTheyAre
from reproduction import protocols
from reproduction.protocols import PROTOCOLS, QUICK, AnyAngleAndUpright, quick_digits

EXPECTED = {
    "rotated": ("MNIST (train), first 50,000", ROTATED, AnyAngle, "MNIST (test)"),
    "mnist_rot": ("rot (train)", replace(ROTATED, interpolation="bicubic"), AsTheyAre, "rot (test)"),
    "affnist": ("MNIST (train), first 50,000", TRANSLATED, AsTheyAre, "affine (test)"),
    "upright": ("MNIST (train)", UPRIGHT, AnyAngle, "MNIST (test)"),
}


@pytest.fixture
def sources(monkeypatch):
    """MNIST as numbered pixels, and the sets that are made from it as blank images that only have names."""

    def numbered(split):
        count = {"train": 60_000, "test": 10_000}[split]
        images = torch.arange(count).reshape(-1, 1, 1, 1) / count
        return Dataset(f"MNIST ({split})", images, torch.zeros(count, dtype=torch.long), DIGITS)

    def blank(kind, side):
        def make(split, train, test, **_):
            assert (train.name, test.name) == ("MNIST (train)", "MNIST (test)")
            return Dataset(f"{kind} ({split})", torch.zeros(2, 1, side, side), torch.zeros(2, dtype=torch.long), DIGITS)

        return make

    monkeypatch.setattr(protocols, "mnist", numbered)
    monkeypatch.setattr(protocols, "regenerate_mnist_rot", blank("rot", 28))
    monkeypatch.setattr(protocols, "regenerate_affnist", blank("affine", 40))
    return numbered


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_has_its_own_training_and_test_images(name):
    protocol = PROTOCOLS[name]
    test = protocol.test()
    assert (protocol.training().name, protocol.augmentation, type(test), test.data.name) == EXPECTED[name]
    if isinstance(test, AsTheyAre):
        assert test.data.images.shape[-1] == protocol.size == protocol.augmentation.size


def test_the_last_10_000_training_digits_are_kept_for_validation(sources):
    for name in ("rotated", "affnist"):
        assert torch.equal(PROTOCOLS[name].training().images, sources("train").images[:50_000])


@pytest.mark.parametrize("name", QUICK)
def test_quick_runs_train_on_training_digits_and_test_on_test_digits(name):
    assert QUICK[name].training().name == embedded_digits("train").name
    tested = QUICK[name].test().data
    assert torch.equal(tested.labels.sort().values, quick_digits().labels.sort().values)
    if name in ("rotated", "upright"):
        assert torch.equal(tested.images, quick_digits().images)


def test_settings_of_upright_trainings_are_chosen_on_upright_images_too():
    digits = embedded_digits("train").take(slice(40))
    network = equicaps.load("digits-plain").network
    figures = AnyAngleAndUpright(digits)(network)
    upright = figures.pop("accuracy_upright")
    assert figures == AnyAngle(digits)(network)
    assert upright == AsTheyAre(protocols.padded(digits))(network)["accuracy"]
    assert upright > 90 > figures["accuracy"]  # the plain CNN was trained upright
