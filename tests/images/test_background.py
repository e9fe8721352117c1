import pytest
import torch
from PIL import Image

from equicaps.data import Dataset, embedded_digits, load_folder, regenerate_affnist, regenerate_mnist_rot
from equicaps.images import Augmentation, ImageFormat, prepare, read, rotate, square
from equicaps.images.background import as_known, background_of, brightness, is_opposite
from equicaps.models.sizes import background, pad_to

COLOUR = torch.tensor([0.9, 0.5, 0.2])[:, None, None]


def coloured(height=20, width=20):
    """An image on a coloured background, with an object that differs from it everywhere."""
    image = COLOUR.expand(3, height, width).clone()
    image[:, height // 4 : height // 2, width // 4 : -2] = torch.tensor([0.1, 0.8, 0.6])[:, None, None]
    return image.unsqueeze(0)


def test_the_background_is_the_median_of_the_outermost_pixels_and_nothing_else():
    images = torch.rand(2, 3, 4, 5)
    border = [images[..., y, x] for y in range(4) for x in range(5) if y in (0, 3) or x in (0, 4)]
    expected = torch.stack(border, -1).median(-1).values
    assert torch.equal(background(images)[..., 0, 0], expected)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 1, 1, 3), (2, 3, 2, 2)])
def test_small_images_are_all_border(shape):
    images = torch.rand(shape)
    assert torch.equal(background(images).flatten(1), images.flatten(2).median(-1).values)


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_a_quarter_turn_does_not_change_the_background(quarters):
    images = torch.rand(3, 3, 7, 10)
    assert torch.equal(background(torch.rot90(images, quarters, (2, 3))), background(images))


@pytest.mark.parametrize(
    "change",
    [
        lambda x: pad_to(x, 27, 31), lambda x: square(x[..., 3:]), lambda x: rotate(x, torch.tensor([33.0])),
        lambda x: rotate(x, torch.tensor([33.0]), 41, "bicubic"),
        lambda x: Augmentation(30, rotation=180.0, shear=0.3, shift=2.0, interpolation="mixed")(x)[0],
        lambda x: prepare(x[0, :, :15].permute(1, 2, 0).numpy(), ImageFormat(3, 32, 24)),
    ],
    ids=["pad", "square", "rotate", "rotate and enlarge", "augment", "prepare"],
)  # fmt: skip
def test_no_step_shows_a_colour_that_the_image_does_not_have(change):
    """Every result lies between the background and the object, in each channel; corners are background."""
    changed = change(coloured())
    low, high = (torch.stack((COLOUR.flatten(), torch.tensor([0.1, 0.8, 0.6]))).amin(0),
                 torch.stack((COLOUR.flatten(), torch.tensor([0.1, 0.8, 0.6]))).amax(0))  # fmt: skip
    slack = 0.12  # bicubic interpolation overshoots
    assert (changed >= low[:, None, None] - slack).all()
    assert (changed <= high[:, None, None] + slack).all()
    torch.testing.assert_close(changed[..., 0, 0], COLOUR.flatten().unsqueeze(0))
    torch.testing.assert_close(changed[..., -1, -1], COLOUR.flatten().unsqueeze(0))


def test_padding_keeps_the_given_pixels_to_the_bit():
    image = torch.rand(2, 3, 9, 9)
    assert torch.equal(pad_to(image, 13, 15)[..., 2:-2, 3:-3], image)


@pytest.mark.parametrize(
    ("found", "expected"),
    [([0.0, 0.1, 0.3], "dark"), ([0.9, 0.7], "bright"), ([0.0] * 90 + [0.9], None), ([0.1, 0.4], None)],
)
def test_a_set_has_the_background_that_all_of_its_images_have(found, expected):
    assert background_of(torch.tensor(found)) == expected


@pytest.mark.parametrize(("known", "expected"), [("dark", [False, False, True]), ("bright", [True, False, False])])
def test_images_with_the_opposite_background_are_inverted(known, expected):
    images = torch.stack([torch.full((1, 6, 6), value) for value in (0.1, 0.5, 0.9)])
    images[..., 2:4, 2:4] = 0.3
    assert is_opposite(images, known).tolist() == expected
    seen, which = as_known(images, known)
    assert which.tolist() == expected
    for before, after, inverted in zip(images, seen, expected, strict=True):
        assert torch.equal(after, 1 - before if inverted else before)
    assert torch.equal(as_known(seen, known)[0], seen)


def test_nothing_is_inverted_for_a_model_that_knows_several_backgrounds():
    images = torch.rand(3, 1, 6, 6)
    assert as_known(images, None)[0] is images


@pytest.mark.parametrize("size", [(6, 6), (5, 9)])
def test_every_road_into_a_network_inverts(size):
    """Files and arrays, and tensors that have the network's size already."""
    dark = torch.rand(1, 1, *size) * 0.2
    format = ImageFormat(1, 6, 6, "dark")
    torch.testing.assert_close(prepare(1 - dark, format), prepare(dark, format))


@pytest.mark.parametrize(("shade", "behind"), [(0.1, 1.0), (0.9, 0.0)])
def test_a_transparent_image_lies_on_what_differs_from_it(shade, behind, tmp_path):
    image = torch.zeros(1, 4, 6, 6)
    image[:, :3, 2:4, 2:4], image[:, 3:, 2:4, 2:4] = shade, 1
    [seen] = read(image)
    assert torch.equal(seen[..., 0, 0], torch.full((1, 3), behind))
    torch.testing.assert_close(seen[..., 2, 2], torch.full((1, 3), shade))
    bytes_ = (image[0].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
    Image.fromarray(bytes_, "RGBA").save(tmp_path / "image.png")
    [read_again] = read(tmp_path / "image.png")
    torch.testing.assert_close(read_again, seen[:, :1], atol=0.01, rtol=0)


@pytest.mark.parametrize("shade", [0, 200])
def test_half_transparent_bytes_are_mixed_as_floats_are_and_the_image_is_not_changed(shade):
    image = torch.randint(256, (2, 4, 40, 30), dtype=torch.uint8)
    image[:, :3] = image[:, :3] // 8 + shade
    before = image.clone()
    [seen], [expected] = read(image), read(image / 255)
    torch.testing.assert_close(seen, expected, rtol=0, atol=0.502 / 255)
    assert torch.equal(image, before)


def test_a_fully_transparent_image_is_black():
    [seen] = read(torch.zeros(1, 4, 3, 3))
    assert seen.abs().max() == 0


def test_digits_are_bright_on_a_dark_background():
    digits = embedded_digits("test")
    assert digits.background == digits.some(3).background == digits.balanced().background == "dark"
    assert background_of(brightness(digits.images)) == "dark"


@pytest.mark.parametrize(("paper", "expected"), [(250, "bright"), (5, "dark"), (128, None)])
def test_the_background_of_a_folder_is_found_and_kept_in_padding(tmp_path, paper, expected):
    for number in range(6):
        path = tmp_path / "strips" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (24, 6), paper - number % 3).save(path)
    train, test = load_folder(tmp_path / "strips", size=24)
    assert train.background == test.background == expected
    assert (train.images[:] - paper / 255).abs().max() < 0.01


def test_regenerated_sets_have_the_background_of_their_source():
    digits = embedded_digits("test").take(slice(0, 30))
    assert regenerate_mnist_rot("train", digits, digits, counts=(4, 1, 1)).background == "dark"
    assert regenerate_affnist("test", digits, digits).background == "dark"


def test_the_background_of_other_data_is_unknown():
    assert Dataset("mine", torch.ones(2, 1, 4, 4), torch.zeros(2, dtype=torch.long), ("a",)).background is None
