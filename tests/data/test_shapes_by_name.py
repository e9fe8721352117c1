import pytest
from PIL import Image
from small_shapes import write_folder

from equicaps.data import shapes_by_name
from equicaps.data.shapes_by_name import find_shapes, holds_shapes, load_shape_splits, load_test_shapes
from equicaps.errors import NotFoundError, UsageError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("data") / "solids")


def test_a_folder_is_known_by_the_endings_of_its_files(folder, tmp_path):
    assert holds_shapes(str(folder))
    assert holds_shapes("modelnet10")
    (tmp_path / "cat").mkdir()
    Image.new("L", (4, 4)).save(tmp_path / "cat" / "a.png")
    assert not holds_shapes(str(tmp_path))
    for name in ("one.OFF", "two.npy"):  # now there are more shapes than images, which may be their textures
        (tmp_path / "cat" / name).touch()
    assert holds_shapes(str(tmp_path))
    for other in ("digits", str(tmp_path / "nowhere"), str(tmp_path / "cat" / "a.png")):
        assert not holds_shapes(other)


def test_hidden_files_do_not_count(tmp_path):
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "a.off").touch()
    assert not holds_shapes(str(tmp_path))


def test_the_splits_are_those_of_the_folder(folder, monkeypatch):
    train, test = load_shape_splits(str(folder))
    assert len(train) + len(test) == 20
    assert load_test_shapes(str(folder)).labels.tolist() == test.labels.tolist()
    monkeypatch.setattr(shapes_by_name, "load_modelnet10", lambda split: (train, test)[split == "test"])
    assert load_test_shapes("modelnet10") is test
    assert load_shape_splits("modelnet10").train is train


def test_what_are_no_shapes_is_refused(tmp_path):
    with pytest.raises(NotFoundError, match=r"neither a data set of shapes \(modelnet10\) nor a folder"):
        load_shape_splits("nowhere")
    with pytest.raises(UsageError, match="holds no shapes"):
        load_shape_splits(str(tmp_path))


def test_files_are_found_once_and_sorted(folder, tmp_path):
    chairs = find_shapes([folder / "chair", folder / "chair" / "1.off"])
    assert chairs == sorted((folder / "chair").iterdir())
    assert len(find_shapes([folder])) == 20
    with pytest.raises(NotFoundError, match="does not exist; expected a shape"):
        find_shapes([folder / "nothing.off"])
    with pytest.raises(NotFoundError, match="holds no shape, but the model takes shapes"):
        find_shapes([tmp_path])
    (tmp_path / "a.png").touch()
    with pytest.raises(UsageError, match=r"a\.png is not a shape, but the model takes shapes"):
        find_shapes([tmp_path / "a.png"])
