import pytest
import torch
from PIL import Image

from equicaps.data import Dataset, embedded_digits, load_folder, regenerate_affnist, regenerate_mnist_rot
from equicaps.images.background import background_of, border_brightness, is_opposite


def test_the_border_is_the_outermost_pixels_and_nothing_else():
    image = torch.zeros(2, 4, 5)
    image[:, 1:-1, 1:-1] = 1
    assert border_brightness(image) == 0
    assert border_brightness(1 - image) == 1
    image[:, 0, 0] = 1  # one of 14
    assert border_brightness(image) == pytest.approx(1 / 14)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (3, 2, 2)])
def test_small_images_are_all_border(shape):
    image = torch.rand(shape)
    assert border_brightness(image) == pytest.approx(image[:, [0], :].mean().item() if 1 in shape[1:] else image.mean())


@pytest.mark.parametrize(
    ("borders", "expected"),
    [([0.0, 0.1, 0.9], "dark"), ([0.1, 0.8, 0.9], "bright"), ([0.0, 0.5, 1.0], None), ([0.4], None)],
)
def test_a_set_has_the_background_of_most_of_its_images(borders, expected):
    assert background_of(borders) == expected


@pytest.mark.parametrize(
    ("background", "border", "expected"),
    [("dark", 0.9, True), ("dark", 0.1, False), ("bright", 0.1, True), ("bright", 0.9, False), (None, 0.9, None)],
)
def test_an_image_is_opposite_only_to_a_known_background(background, border, expected):
    assert is_opposite(background, border) is expected


def test_digits_are_bright_on_a_dark_background():
    digits = embedded_digits("test")
    assert digits.background == digits.some(3).background == digits.balanced().background == "dark"
    assert background_of([border_brightness(image) for image in digits.images[:20]]) == "dark"


@pytest.mark.parametrize(("paper", "expected"), [(250, "bright"), (5, "dark"), (128, None)])
def test_the_background_of_a_folder_is_measured_without_padding(tmp_path, paper, expected):
    """When strips are padded to squares, most of their border becomes black."""
    for number in range(6):
        path = tmp_path / "strips" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (24, 6), paper - number % 3).save(path)
    train, test = load_folder(tmp_path / "strips", size=24)
    assert train.background == test.background == expected
    assert max(map(border_brightness, train.images)) < 1 / 3


def test_regenerated_sets_have_the_background_of_their_source():
    digits = embedded_digits("test").take(slice(0, 30))
    assert regenerate_mnist_rot("train", digits, digits, counts=(4, 1, 1)).background == "dark"
    assert regenerate_affnist("test", digits, digits).background == "dark"


def test_the_background_of_other_data_is_unknown():
    assert Dataset("mine", torch.ones(2, 1, 4, 4), torch.zeros(2, dtype=torch.long), ("a",)).background is None
