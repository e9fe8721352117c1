"""Known angles of images: in a column of the list of images, or in a list of their own."""

import shutil

import pytest
import torch
from PIL import Image

from equicaps.data import load_folder
from equicaps.data.angles import read_angles
from equicaps.data.by_name import load_training_splits
from equicaps.errors import NotFoundError, UsageError

ANGLES = {0: "90", 1: "-30", 2: "", 3: " 725.5 ", 4: "0"}
DEGREES = {0: 90.0, 1: 330.0, 3: 5.5, 4: 0.0}


@pytest.fixture
def folder(tmp_path):
    """Eight images in two classes; the grey level of each is ten times its number."""
    for number in range(8):
        path = tmp_path / "images" / ("odd" if number % 2 else "even") / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (8, 8), 10 * number).save(path)
    return tmp_path / "images"


def write(path, rows, head="file,angle"):
    path.write_text("\n".join([head, *rows]))
    return path


def name_of(number):
    return f"{'odd' if number % 2 else 'even'}/{number}.png"


@pytest.fixture
def listed(folder):
    """A list of angles beside the folder."""
    return write(folder.parent / "angles.csv", [f"images/{name_of(number)},{ANGLES[number]}" for number in ANGLES])


def found(splits):
    """The known angle of each image by its number."""
    return {
        round(image.mean().item() * 25.5): angle
        for data in splits
        for image, angle in zip(data.images, data.angles.tolist(), strict=True)
        if angle == angle
    }


def test_a_list_beside_a_folder_gives_each_image_its_angle(folder, listed):
    splits = load_folder(folder, angles=listed)
    assert found(splits) == DEGREES
    assert "angles known for 4 of them" in splits.train.note
    assert found(load_training_splits(str(folder), size=8, angles=listed)) == DEGREES


def test_a_column_of_a_list_of_images_gives_each_image_its_angle(folder):
    rows = [f"{name_of(number)},{number % 2},{ANGLES.get(number, '')}" for number in range(8)]
    splits = load_folder(write(folder / "list.csv", rows, "file,label,angle"))
    assert found(splits) == DEGREES
    assert "ignored" not in splits.train.note


def test_without_a_known_angle_there_are_none(folder):
    empty = write(folder.parent / "angles.csv", [f"images/{name_of(0)},"])
    for splits in (load_folder(folder), load_folder(folder, angles=empty)):
        assert splits.train.angles is None
        assert splits.test.angles is None
        assert "angles" not in splits.train.note


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("images/odd/5.png,north", r"angles\.csv, row 7: the angle of images/odd/5\.png must be a finite.*'north'"),
        ("images/odd/5.png,inf", "row 7: .* finite number of degrees, counter-clockwise, but is 'inf'; leave it empty"),
        ("images/odd/5.png,nan", "row 7: .* but is 'nan'; leave it empty if it is unknown"),
        (
            "images/even/0.png,91",
            r"row 7: images/even/0.png has the angle 91, but 90 in .*angles\.csv, row 2; keep one",
        ),
        ("images/odd/50.png,1", r"row 7: .*50\.png is not a file; paths are relative to"),
        (",1", "row 7: every row needs a file"),
    ],
    ids=["word", "infinite", "nan", "contradiction", "no such file", "no file"],
)
def test_what_is_wrong_with_a_list_is_said_with_its_row(folder, listed, row, message):
    listed.write_text(f"{listed.read_text()}\n{row}")
    with pytest.raises(UsageError, match=message):
        load_folder(folder, angles=listed)


def test_the_same_angle_again_is_no_contradiction(folder, listed):
    listed.write_text(f"{listed.read_text()}\nimages/even/0.png,-270\nimages/even/0.png,")
    assert found(load_folder(folder, angles=listed)) == DEGREES


def test_tiny_negative_angles_stay_below_360(folder):
    [known] = read_angles(write(folder / "angles.csv", [f"{name_of(0)},-1e-20"])).values()
    assert known.degrees == 0


def test_a_list_without_its_columns_or_of_other_images_is_refused(folder, listed, tmp_path):
    with pytest.raises(UsageError, match=r"the columns 'file' and 'angle'.* 'angle' not found, only 'file', 'turn'"):
        load_folder(folder, angles=write(tmp_path / "wrong.csv", ["images/odd/1.png,3"], "file,turn"))
    with pytest.raises(NotFoundError, match=r"nowhere\.csv is not a file"):
        load_folder(folder, angles=tmp_path / "nowhere.csv")
    other = tmp_path / "other.png"
    shutil.copy(folder / name_of(0), other)
    with pytest.raises(UsageError, match=r"row 2: .*other\.png is not one of the images"):
        load_folder(folder, angles=write(tmp_path / "others.csv", ["other.png,3"]))
    listed.write_text(f"{listed.read_text()}\nother.png,3")
    assert "1 angles ignored of files that are not among them" in load_folder(folder, angles=listed).train.note
    with pytest.raises(UsageError, match="belong to images of a folder"):
        load_training_splits("digits", size=32, angles=listed)


def test_the_angle_of_a_copy_is_that_of_the_image(folder, listed, tmp_path):
    """Of files with the same bytes one is kept; whichever it is, it keeps what is known of the other."""
    for name in ("0_first.png", "z_last.png"):
        shutil.copy(folder / name_of(6), folder / "even" / name)
    rows = ["images/even/0_first.png,12", "images/even/z_last.png,372"]
    listed.write_text("\n".join([listed.read_text(), *rows]))
    assert found(load_folder(folder, angles=listed)) == DEGREES | {6: 12.0}
    listed.write_text(listed.read_text().replace(rows[0], "").replace(",372", ",13"))
    assert found(load_folder(folder, angles=listed)) == DEGREES | {6: 13.0}
    listed.write_text(f"{listed.read_text()}\n{rows[0]}")
    with pytest.raises(UsageError, match=r"row \d+: .*z_last\.png, a copy of .* has the angle 13, but 12 in .*row \d+"):
        load_folder(folder, angles=listed)


def test_a_column_and_a_list_must_not_contradict_each_other(folder, listed):
    images = write(
        folder / "list.csv", [f"{name_of(number)},{number % 2},90" for number in range(8)], "file,label,angle"
    )
    with pytest.raises(
        UsageError, match=r"angles\.csv, row 3: .*1\.png has the angle 330, but 90 in .*list\.csv, row 3"
    ):
        load_folder(images, angles=listed)
    listed.write_text("file,angle\nimages/odd/1.png,450")
    assert set(found(load_folder(images, angles=listed)).values()) == {90.0}


def test_known_angles_stay_with_their_images(folder, listed):
    """Guard of the order: training and test images are sorted by class, then by name."""
    train, test = load_folder(folder, angles=listed)
    both = torch.cat((train.angles, test.angles))
    assert both.isnan().sum() == 4
    assert len(both) == 8
