import pytest

from equicaps.data.csv_rows import read_rows
from equicaps.errors import NotFoundError, UsageError

NEEDED = ("file", "label")


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "list.csv"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_rows_are_read_by_the_names_of_their_columns(write, mark):
    rows, names = read_rows(write(f'{mark}label,file,size\na,1.png,8\n"b, or c",2.png\n'), NEEDED)
    assert names == ["label", "file", "size"]
    assert rows == [
        {"label": "a", "file": "1.png", "size": "8"},
        {"label": "b, or c", "file": "2.png", "size": None},  # too few fields: the last ones are missing
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the first row must name the columns 'file' and 'label', .* not found, only none"),
        ("file,class\n", "'label' not found, only 'file', 'class'"),
        ("file,class\n1.png,a\n", "'label' not found, only 'file', 'class'"),
        ("file,label\n", "list.csv has no rows below the first, which names the columns; expected one for each file"),
        ("file,label\n\n\n", "list.csv has no rows"),
        ("file,label\n1.png,a\n2.png,b,c\n", r"row 3: every row must have 2 fields, as the first, .* has 3; put"),
        ("file,label\n1.png,a,b,c\n2.png,b\n", r"row 2: every row must have 2 fields, as the first, .* has 4"),
        ('file,label\n1.png,"a', "is not a CSV file in UTF-8"),
    ],
)
def test_what_is_wrong_with_a_list_is_said(write, text, message):
    with pytest.raises(UsageError, match=message):
        read_rows(write(text), NEEDED)


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match=r"nothing\.csv is not a file; expected a CSV file with the .*'file' and"):
        read_rows(tmp_path / "nothing.csv", NEEDED)
