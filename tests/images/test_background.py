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


def border_of(image):
    """The outermost pixels in reading order, each as a tuple of its channels."""
    height, width = image.shape[-2:]
    places = [(y, x) for y in range(height) for x in range(width) if y in (0, height - 1) or x in (0, width - 1)]
    return [tuple(image[:, y, x].tolist()) for y, x in places]


def median_of(pixels):
    return tuple(sorted(values)[(len(pixels) - 1) // 2] for values in zip(*pixels, strict=True))


def nearest(pixels, colour):
    """As plain loops: the nearest pixel, in steps of 1/255; of several, the smallest by value."""
    away = {pixel: sum(abs(round(255 * (a - b))) for a, b in zip(pixel, colour, strict=True)) for pixel in pixels}
    least = min(away.values())
    return min(pixel for pixel in pixels if away[pixel] == least) if least else colour


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("size", [(4, 5), (7, 7), (1, 1), (1, 3), (5, 1), (2, 2)])
def test_the_background_is_the_outermost_pixel_nearest_to_the_median_and_nothing_else(channels, size, dtype):
    images = torch.rand(8, channels, *size).to(dtype)
    borders = [border_of(image) for image in images]
    expected = torch.tensor([nearest(border, median_of(border)) for border in borders], dtype=dtype)
    assert torch.equal(background(images)[..., 0, 0], expected)
    assert all(tuple(found) in border for found, border in zip(expected.tolist(), borders, strict=True))


def test_the_median_of_every_channel_alone_is_a_colour_that_images_do_not_have():
    """Control for the test above."""
    borders = [border_of(image) for image in torch.rand(8, 3, 7, 7)]
    assert not any(median_of(border) in border for border in borders)


def test_grey_images_keep_the_median_to_the_bit(dtype):
    """In one channel or three, also if other pixels are within rounding errors of it."""
    grey = torch.cat((torch.rand(6, 1, 7, 10), 0.5 + 1e-6 * torch.rand(6, 1, 7, 10))).to(dtype)
    expected = torch.tensor([median_of(border_of(image)) for image in grey], dtype=dtype)
    assert torch.equal(background(grey)[..., 0, 0], expected)
    assert torch.equal(background(grey.expand(-1, 3, -1, -1))[..., 0, 0], expected.expand(-1, 3))


def stripes(*colours, side=9):
    """Upright stripes of these colours, side by side."""
    shown = torch.tensor(colours)[torch.arange(side) % len(colours)]
    return shown.T[None, :, None].expand(1, -1, side, -1).contiguous()


RED, GREEN, BLUE = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_the_background_of_stripes_is_one_of_their_colours_however_they_are_rotated(quarters):
    """All three are equally far from their median, which is black: the smallest value decides, not the place."""
    image = torch.rot90(stripes(RED, GREEN, BLUE), quarters, (2, 3))
    assert median_of(border_of(image[0])) == (0.0, 0.0, 0.0)
    assert tuple(background(image).flatten().tolist()) == BLUE
    assert torch.equal(background((255 * image).byte()), (255 * background(image)).byte())


def test_the_first_pixel_that_is_nearest_would_depend_on_the_rotation():
    """Control for the test above."""
    image = stripes(RED, GREEN, BLUE, side=8)
    assert border_of(image[0])[0] == RED
    assert border_of(torch.rot90(image, 1, (2, 3))[0])[0] == GREEN


@pytest.mark.parametrize("quarters", [1, 2, 3])
@pytest.mark.parametrize("shades", [2, 256])
def test_a_quarter_turn_does_not_change_the_background(quarters, shades):
    """Of few shades, many pixels are equally near."""
    images = torch.randint(shades, (40, 3, 7, 10)) / (shades - 1)
    assert not torch.equal(torch.rot90(images, quarters, (2, 3)), images)
    assert torch.equal(background(torch.rot90(images, quarters, (2, 3))), background(images))


def test_bytes_and_floats_have_the_same_background(dtype):
    """Also where several pixels are equally near, between which rounding errors would choose."""
    images = torch.randint(4, (2000, 3, 5, 5), dtype=torch.uint8) * 51
    assert torch.equal(background(images).to(dtype) / 255, background(images.to(dtype) / 255))


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
