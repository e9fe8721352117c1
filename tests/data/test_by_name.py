"""The images for a command, by name or from a folder."""

from dataclasses import replace

import pytest
from PIL import Image

from equicaps.data import embedded_digits
from equicaps.data.by_name import NAMES, load_test_split, load_training_splits
from equicaps.data.catalogue import CATALOGUE
from equicaps.errors import NotFoundError
from equicaps.images import ImageFormat


@pytest.fixture
def loaded(monkeypatch):
    """The splits that are loaded; every set is a few digits."""
    seen = []
    for name in NAMES:
        load = lambda split, name=name: seen.append((name, split)) or embedded_digits("test").take(slice(0, 2))  # noqa: E731
        monkeypatch.setitem(CATALOGUE, name, replace(CATALOGUE[name], load=load))
    return seen


@pytest.mark.parametrize(("name", "held_out"), [("digits", "test"), ("mnist", "test"), ("galaxies", "valid")])
def test_a_training_leaves_the_test_split_alone_where_there_is_a_validation_split(name, held_out, loaded):
    load_training_splits(name, size=32)
    assert loaded == [(name, "train"), (name, held_out)]


@pytest.mark.parametrize("name", NAMES)
def test_the_test_split_is_that_of_the_catalogue(name, loaded):
    load_test_split(name, ImageFormat(1, 32, 32))
    assert loaded == [(name, "test")]


def test_a_folder_is_fitted_to_the_given_size_and_channels(tmp_path):
    for number in range(4):
        (tmp_path / f"{number % 2}").mkdir(exist_ok=True)
        Image.new("RGB", (8, 8), (0, 0, 50 * number)).save(tmp_path / f"{number % 2}" / f"{number}.png")
    splits = load_training_splits(str(tmp_path), size=16)
    assert splits.train.images.shape[1:] == (3, 8, 8)  # reduced to the given size, but not enlarged
    assert load_training_splits(str(tmp_path), size=6).train.images.shape[1:] == (3, 6, 6)
    assert load_test_split(str(tmp_path), ImageFormat(1, 16, 12)).images.shape[1:] == (1, 16, 16)


@pytest.mark.parametrize("load", [lambda name: load_training_splits(name, size=32),
                                  lambda name: load_test_split(name, ImageFormat(1, 32, 32))])  # fmt: skip
def test_an_unknown_name_is_refused_with_the_known_ones(load):
    with pytest.raises(
        NotFoundError, match=r"'nowhere' is neither a data set \(digits, mnist, galaxies\), nor a folder"
    ):
        load("nowhere")
