import io
import shutil
import struct
import sys
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

from equicaps.data import load_folder
from equicaps.errors import DamagedFileError, UsageError
from equicaps.images import read

GREY = (90, 90, 90)


def save(path, size=(8, 8), colour=90, mode="L"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


@pytest.fixture
def folder(tmp_path):
    """Ten cats and five dogs; each image has a grey level of its own."""
    for name, count, start in (("dog", 5, 100), ("cat", 10, 0)):
        for number in range(count):
            save(tmp_path / "pets" / name / f"{number}.png", colour=start + number)
    return tmp_path / "pets"


def levels(data):
    return (data.images[:][:, 0, 0, 0] * 255).round().int().tolist()


def test_each_class_is_divided_by_the_seed(folder):
    train, test = load_folder(folder)
    assert train.classes == test.classes == ("cat", "dog")
    assert (torch.bincount(train.labels) + torch.bincount(test.labels)).tolist() == [10, 5]
    assert torch.bincount(train.labels).min() >= 1 <= torch.bincount(test.labels).min()
    assert sorted(levels(train) + levels(test)) == [*range(10), *range(100, 105)]
    for data in (train, test):
        assert [level >= 100 for level in levels(data)] == data.labels.bool().tolist()
    assert levels(load_folder(folder).test) == levels(test)
    assert any(levels(load_folder(folder, seed=seed).test) != levels(test) for seed in (1, 2, 3))
    assert test.name == "pets (test, about 20% of each class for test, seed 0)"
    assert test.note == "15 grey images in all, 8x8, unchanged"


def test_folders_train_and_test_are_taken_as_they_are(folder, tmp_path):
    for part, names in (("train", range(7)), ("test", range(7, 10))):
        for name in ("cat", "dog"):
            for number in names:
                save(tmp_path / "fixed" / part / name / f"{number}.PNG", colour=number)
    train, test = load_folder(tmp_path / "fixed")
    assert sorted(levels(train)) == sorted([*range(7)] * 2)
    assert sorted(levels(test)) == sorted([7, 8, 9] * 2)
    assert test.name == "fixed (test)"


def test_other_sizes_are_scaled_and_padded_without_distortion(folder):
    picture = Image.new("L", (16, 8), 200)
    picture.paste(250, (4, 2, 12, 6))
    picture.save(folder / "cat" / "wide.png")
    save(folder / "cat" / "small.png", (4, 4), 200)
    train, test = load_folder(folder)
    assert train.note == ("17 grey images in all, 2 of them resized to 8x8 from 4x4 or 16x8 (1 padded to a square)")
    pixels = torch.cat((train.images[:], test.images[:]))
    [wide] = (pixels[pixels[:, 0, 4, 4] > 0.8, 0] * 255 - 200) / 50
    rows = (
        torch.tensor([0, 0, 1, 7, 7, 1, 0, 0]) / 8
    )  # padded first, then smoothed: a quarter of 16 rows, in the middle
    columns = torch.tensor([0, 1, 7, 8, 8, 7, 1, 0]) / 8
    torch.testing.assert_close(wide, torch.outer(rows, columns), atol=0.5 / 50 + 1e-4, rtol=0)  # rounded to bytes
    larger = load_folder(folder, size=32).train
    assert larger.images.shape[1:] == (1, 32, 32)
    assert larger.note.startswith(
        "17 grey images in all, each resized to 32x32 from sizes between 4x4 and 16x8 (1 padded"
    )


def test_scaling_down_smooths(folder):
    """A fine chequerboard becomes grey, not black or white."""
    board = (np.indices((64, 64)).sum(0) % 2 * 255).astype(np.uint8)
    for name in ("cat", "dog"):
        for number in range(20):
            board[0, 0] = number  # copies would be left out
            Image.fromarray(board).save(folder / name / f"board{number}.png")
    pixels = load_folder(folder, size=8).train.images[:]
    assert ((pixels > 0.45) & (pixels < 0.55)).flatten(1).all(1).sum() > 20


def test_colour_is_decided_from_the_images_or_the_argument(folder):
    save(folder / "cat" / "grey.png", colour=GREY, mode="RGB")
    assert load_folder(folder).train.images.shape[1] == 1
    assert load_folder(folder, channels=3).train.images.shape[1] == 3
    for number in range(3):
        save(folder / "dog" / f"red{number}.png", colour=(200 + number, 0, 0), mode="RGB")
    train = load_folder(folder).train
    assert train.images.shape[1] == 3
    assert train.note.startswith("19 colour images in all, 8x8")
    assert train.images[:][..., 0, 0].std(1).max() > 0.3
    grey = load_folder(folder, channels=1).train
    assert grey.images.shape[1] == 1
    assert grey.images[:][grey.labels == 1].amin() == pytest.approx(0.299 * 200 / 255, abs=0.02)


@pytest.mark.parametrize(
    ("mode", "colour", "expected"),
    [
        ("1", 1, 1.0),
        ("I;16", 65535, 1.0),
        ("I;16", 6553, 0.1),
        ("LA", (255, 0), 0.0),
        ("RGBA", (255, 255, 255, 51), 0.2),
        ("P", 0, 0.0),
        ("RGB", (51, 51, 51), 0.2),
    ],
)
def test_every_kind_of_pixel_becomes_a_value_between_0_and_1(tmp_path, mode, colour, expected):
    save(tmp_path / "a.png", colour=colour, mode=mode)
    [pixels] = read(tmp_path / "a.png")
    torch.testing.assert_close(pixels, torch.full((1, 1, 8, 8), expected), rtol=0, atol=0.01)


def test_exif_orientation_is_applied(tmp_path):
    """6: the camera was turned; the first row is the right side."""
    picture = Image.new("L", (8, 8))
    picture.paste(255, (0, 0, 8, 2))
    exif = Image.Exif()
    exif[0x0112] = 6
    picture.save(tmp_path / "a.png", exif=exif)
    pixels = read(tmp_path / "a.png")[0][0, 0]
    assert pixels[:, -2:].min() == 1
    assert pixels[:, :-2].max() == 0


def test_files_that_are_not_images_are_counted(folder):
    (folder / "cat" / "notes.txt").write_text("mine")
    (folder / ".DS_Store").write_text("hidden")
    (folder / ".thumbnails").mkdir()
    assert load_folder(folder).train.note.endswith("; 1 files ignored that are not images")


@pytest.mark.parametrize("place", [".ipynb_checkpoints", "more/.thumbnails/small", "more/.hidden"])
def test_hidden_folders_do_not_count(folder, place):
    """What an editor keeps beside the images is no image; a folder that is not hidden is looked into."""
    save(folder / "cat" / place / "0-checkpoint.png", colour=250)
    (folder / "cat" / place / "notes.txt").write_text("hidden as well")
    train, test = load_folder(folder)
    assert 250 not in levels(train) + levels(test)
    assert test.note == "15 grey images in all, 8x8, unchanged"
    save(folder / "cat" / "more" / "seen.png", colour=250)
    assert 250 in levels(load_folder(folder).train) + levels(load_folder(folder).test)


def test_hidden_folders_above_the_images_do_not_matter(folder, tmp_path):
    (tmp_path / ".cache").mkdir()
    folder.rename(tmp_path / ".cache" / "pets")
    assert len(load_folder(tmp_path / ".cache" / "pets").train) == 12


@pytest.mark.parametrize("seed", range(5))
def test_copies_within_a_class_are_read_once(folder, seed):
    """No image is in both parts, whichever way they are divided."""
    for number in range(10):
        shutil.copy(folder / "cat" / f"{number}.png", folder / "cat" / f"copy of {number}.png")
    train, test = load_folder(folder, seed=seed)
    assert sorted(levels(train) + levels(test)) == [*range(10), *range(100, 105)]
    assert test.note == "15 grey images in all, 8x8, unchanged; 10 copies left out"


def test_a_training_image_that_is_also_a_test_image_is_left_to_the_test(tmp_path):
    for part, names in (("train", (1, 2, 3)), ("test", (3, 4))):
        for name, start in (("cat", 0), ("dog", 100)):
            for number in names:
                save(tmp_path / part / name / f"{part}{number}.png", colour=start + number)
    train, test = load_folder(tmp_path)
    assert sorted(levels(train)) == [1, 2, 101, 102]
    assert sorted(levels(test)) == [3, 4, 103, 104]
    assert train.note.endswith("; 2 copies left out")
    for number in (1, 2):
        (tmp_path / "train" / "cat" / f"train{number}.png").unlink()
    with pytest.raises(UsageError, match=r"train/cat holds only copies of test images"):
        load_folder(tmp_path)


def test_one_image_in_two_classes_is_named(folder):
    shutil.copy(folder / "cat" / "3.png", folder / "dog" / "also3.png")
    train, test = load_folder(folder)
    assert len(train) + len(test) == 16
    named = "1 files are the same in different classes, such as cat/3.png and dog/also3.png"
    assert test.note == f"16 grey images in all, 8x8, unchanged; {named}"


def test_a_third_folder_beside_train_and_test_is_mentioned(tmp_path):
    for number, part in enumerate(("train", "test", "valid", ".git")):
        for start, name in enumerate(("cat", "dog")):
            save(tmp_path / part / name / "a.png", colour=10 * number + start)
    train, test = load_folder(tmp_path)
    assert len(train) == len(test) == 2
    assert train.note.endswith("; folder 'valid' beside train and test ignored")


@pytest.mark.parametrize("harm", ["truncated", "text", "empty", "corrupted"])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_a_broken_image_is_named(folder, harm, suffix):
    path = folder / "dog" / f"broken.{suffix}"
    file = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), dtype=np.uint8)
    Image.fromarray(noise).save(file, {"png": "PNG", "jpg": "JPEG"}[suffix])
    content = file.getvalue()
    middle = len(content) // 2
    harmed = {
        "truncated": content[:middle],
        "text": b"not an image",
        "empty": b"",
        "corrupted": content[:40] + bytes(200) + content[240:],
    }
    path.write_bytes(harmed[harm])
    with pytest.raises(DamagedFileError, match=rf"dog/broken.{suffix} is (truncated|not a readable image)"):
        load_folder(folder)


def bomb(width, height):
    """A PNG whose header promises far more than it holds."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [7_500, 11_000, 60_000])
def test_a_decompression_bomb_is_refused_by_its_name(folder, side):
    """Below Pillow's warning, between its warning and its error, above its error."""
    (folder / "dog" / "bomb.png").write_bytes(bomb(side, side))
    with pytest.raises(DamagedFileError, match=r"dog/bomb.png is refused: "):
        load_folder(folder)


def test_wrong_folders_are_explained(folder, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        load_folder(tmp_path / "nowhere")
    (folder / "bird").mkdir()
    with pytest.raises(UsageError, match=r"pets/bird holds no image \(.*\.png"):
        load_folder(folder)
    save(folder / "bird" / "one.png")
    with pytest.raises(UsageError, match=r"the class .bird. has one image; at least two"):
        load_folder(folder)
    with pytest.raises(UsageError, match=r"at least two classes .* found none"):
        load_folder(folder / "cat")
    save(tmp_path / "single" / "cat" / "a.png")
    with pytest.raises(UsageError, match=r"at least two classes .* found only 'cat'"):
        load_folder(tmp_path / "single")


def test_half_a_division_and_differing_classes_are_explained(tmp_path):
    for name in ("cat", "cow"):
        save(tmp_path / "test" / name / "a.png")
    with pytest.raises(UsageError, match="has a folder 'test', but no 'train'"):
        load_folder(tmp_path)
    for name in ("cat", "dog"):
        save(tmp_path / "train" / name / "a.png")
    with pytest.raises(UsageError, match="must have the same classes, but differ in cow, dog"):
        load_folder(tmp_path)


@pytest.mark.parametrize(("wrong", "message"), [({"size": 0}, "size"), ({"test_fraction": 1.0}, "test_fraction")])
def test_wrong_arguments_are_explained(folder, wrong, message):
    with pytest.raises(UsageError, match=f"load_folder: {message} must"):
        load_folder(folder, **wrong)


def test_without_pillow_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.delitem(sys.modules, "equicaps.images.decode")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"need Pillow: pip install 'equicaps\[data\]'"):
        load_folder(folder)


def test_folders_that_could_command_a_terminal_are_refused(folder):
    save(folder / "\x1b[2J" / "a.png")
    with pytest.raises(UsageError, match="cannot be printed; rename it"):
        load_folder(folder)


def test_about_a_fifth_is_for_the_test(tmp_path):
    for name, start in (("cat", 0), ("dog", 1)):
        for number in range(120):
            save(tmp_path / name / f"{number}.png", colour=2 * number + start)
    counts = torch.bincount(load_folder(tmp_path).test.labels)
    assert all(14 <= count <= 36 for count in counts.tolist())  # 24 +- 12


def test_an_added_image_moves_no_other(folder):
    """From training to test: a model that is trained would be tested on what it knows."""
    before = [set(levels(part)) for part in load_folder(folder, test_fraction=0.4)]
    for number in range(20):
        save(folder / "cat" / f"a{number}.png", colour=200 + number)
        train, test = (set(levels(part)) for part in load_folder(folder, test_fraction=0.4))
        assert before[0] <= train
        assert before[1] <= test
        assert len(train) + len(test) == 16 + number


def test_a_folder_train_alone_is_divided(folder, tmp_path):
    """As the same classes without that folder are."""
    shutil.copytree(folder, tmp_path / "more" / "train")
    (tmp_path / "more" / "other").mkdir()
    found, expected = load_folder(tmp_path / "more"), load_folder(folder)
    assert [levels(part) for part in found] == [levels(part) for part in expected]
    assert "folder 'other' beside train ignored" in found.test.note
    assert found.test.name == "more (test, about 20% of each class for test, seed 0)"


def test_classes_are_sorted_whatever_the_order_of_the_folders(tmp_path):
    names = [f"class{number * 7 % 12:02}" for number in range(12)]
    for name in names:
        for number in range(2):
            save(tmp_path / name / f"{number}.png", colour=20 * number + names.index(name))
    assert load_folder(tmp_path).train.classes == tuple(sorted(names))


def test_a_class_of_two_has_one_image_in_each_split_whatever_the_seed(tmp_path):
    for start, name in enumerate(("cat", "dog")):
        for number in range(2):
            save(tmp_path / name / f"{number}.png", colour=100 * start + number)
    for seed in range(8):
        for data in load_folder(tmp_path, seed=seed):
            assert data.labels.tolist() == [0, 1]


def test_the_side_is_the_median_of_the_longer_sides(tmp_path):
    for start, name in enumerate(("cat", "dog")):
        for number in range(3):
            save(tmp_path / name / f"{number}.png", (20, 10), colour=100 * start + number)
    assert load_folder(tmp_path).train.images.shape[-2:] == (20, 20)
