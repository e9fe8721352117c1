import pytest
from PIL import Image

from equicaps.data import load_folder
from equicaps.data.by_name import survey
from equicaps.data.table import read_table
from equicaps.errors import UsageError


@pytest.fixture
def table(tmp_path):
    """Eight images in one folder, each with a grey level of its own, and a list of them."""
    rows = ["file,label,weight"]
    (tmp_path / "all").mkdir()
    for number in range(8):
        Image.new("L", (8, 6), 10 * number).save(tmp_path / "all" / f"{number}.png")
        rows.append(f"all/{number}.png,{'odd' if number % 2 else 'even'},1")
    path = tmp_path / "list.csv"
    path.write_text("\n".join(rows))
    return path


def test_a_list_gives_the_images_and_labels_that_it_names(table):
    train, test = load_folder(table)
    assert train.classes == test.classes == ("even", "odd")
    assert len(train) + len(test) == 8
    for data in (train, test):
        levels = (data.images[:][:, 0, 4, 4] * 255).round().int()
        assert ((levels // 10) % 2 == data.labels).all()
    assert "columns ignored: 'weight'" in train.note
    assert (survey(str(table)).images, survey(str(table)).side) == (len(train), 8)


def test_paths_may_be_absolute_and_rows_repeated(table, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "list.csv"
    elsewhere.parent.mkdir()
    rows = [f"{table.parent / 'all' / f'{number}.png'},{number % 2}" for number in range(8)]
    elsewhere.write_text("\n".join(["file,label", *rows, rows[0]]))
    found = read_table(elsewhere)
    assert sorted(found.files) == ["0", "1"]
    assert found.remarks == ["1 repeated rows left out"]
    assert len(load_folder(elsewhere).train) >= 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "must name the columns 'file' and 'label'"),
        (lambda text: text.replace("label", "class"), "'label' not found, only 'file', 'class', 'weight'"),
        (lambda text: text.replace("3.png", "30.png"), r"row 5: .*30\.png is not a file; paths are relative to"),
        (lambda text: text.replace("3.png,odd", "3.png,"), "row 5: every row needs a file and a label"),
        (lambda text: text + "\nall/0.png,odd,1", "row 10: all/0.png is labelled 'odd', but 'even' in a row above"),
        (lambda text: text.replace("odd", "even"), "at least two classes are needed; found only 'even'"),
        (lambda text: text.replace("odd", "o\x1bd"), "characters that cannot be printed"),
        (lambda text: text + '\n"all', "is not a CSV file in UTF-8"),
        (lambda text: text.splitlines()[0], "list.csv has no rows below the first"),
        (lambda text: text.replace("3.png,odd", "3.png,odd,odd"), "row 5: every row must have 3 fields, .* has 4"),
    ],
    ids=[
        "empty",
        "no label",
        "no such file",
        "no value",
        "two labels",
        "one class",
        "control",
        "quote",
        "no rows",
        "too many",
    ],
)
def test_what_is_wrong_with_a_list_is_said(table, change, message):
    table.write_text(change(table.read_text()))
    with pytest.raises(UsageError, match=message):
        load_folder(table)


def test_a_file_that_is_not_text_is_refused(table):
    table.write_bytes(b"file,label\n\xff\xfe,a")
    with pytest.raises(UsageError, match="is not a CSV file in UTF-8"):
        read_table(table)
