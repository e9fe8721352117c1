import importlib.util
import os
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch

from equicaps.data import embedded, embedded_digits, load_mnist
from equicaps.errors import DamagedFileError

ROOT = Path(__file__).resolve().parents[2]
MNIST = Path(os.environ.get("EQUICAPS_DATA", ROOT.parent / "shared" / "data"))
COUNTS = {"train": 4000, "test": 1000}


@pytest.mark.parametrize("split", COUNTS)
def test_the_same_number_of_each_class(split):
    digits = embedded_digits(split)
    assert digits.images.shape == (COUNTS[split], 1, 28, 28)
    assert torch.bincount(digits.labels).tolist() == [COUNTS[split] // 10] * 10
    assert digits.images.min() == 0
    assert digits.images.max() == 1
    assert split in digits.name


def test_no_training_digit_is_a_test_digit():
    train, test = ({image.numpy().tobytes() for image in embedded_digits(split).images} for split in COUNTS)
    assert len(train) == COUNTS["train"]
    assert len(test) == COUNTS["test"]
    assert not train & test


def test_the_file_is_small_and_its_licence_lies_beside_it():
    folder = resources.files("equicaps.data") / "files"
    assert len((folder / embedded.FILE).read_bytes()) < 2**20
    assert "CC BY-SA 3.0" in (folder / "LICENSE-MNIST.txt").read_text()


def test_a_damaged_file_is_named(monkeypatch):
    monkeypatch.setattr(embedded, "SHA256", "0" * 64)
    with pytest.raises(DamagedFileError, match=r"mnist_subset.npz is damaged: its sha256 is .*Install equicaps again"):
        embedded_digits("test")


@pytest.mark.skipif(not (MNIST / "mnist").exists(), reason=f"no MNIST in {MNIST}; set EQUICAPS_DATA")
def test_training_digits_come_from_mnists_training_set_and_test_digits_from_its_test_set():
    """Digit by digit, and as the generator would write the file."""
    with np.load(resources.files("equicaps.data") / "files" / embedded.FILE) as file:
        shipped = dict(file)
    for split in COUNTS:
        places = torch.from_numpy(shipped[f"{split}_indices"].astype(int))
        assert len(places.unique()) == COUNTS[split]
        mnist, digits = load_mnist(split, MNIST), embedded_digits(split)
        assert torch.equal(mnist.images[places], digits.images)
        assert torch.equal(mnist.labels[places], digits.labels)
    spec = importlib.util.spec_from_file_location("make_embedded_digits", ROOT / "docs" / "make_embedded_digits.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    made = generator.arrays(MNIST)
    assert made.keys() == shipped.keys()
    assert all(np.array_equal(made[name], shipped[name]) and made[name].dtype == shipped[name].dtype for name in made)
