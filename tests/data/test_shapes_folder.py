import os
import shutil
import sys

import numpy as np
import pytest
import torch

from equicaps.data import Cloud, Mesh, load_shapes_folder, shapes_folder
from equicaps.errors import DamagedFileError, MissingPackageError, NotFoundError, UsageError


def save(path, side):
    """A right triangle with legs of these lengths."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"OFF\n3 1 0\n0 0 0\n{side} 0 0\n0 {side} 0\n3 0 1 2\n")


@pytest.fixture
def folder(tmp_path):
    """Ten chairs and five tables; each has a size of its own."""
    for name, count, start in (("table", 5, 100), ("chair", 10, 1)):
        for number in range(count):
            save(tmp_path / "things" / name / f"{number}.off", start + number)
    return tmp_path / "things"


def sides(data):
    return [round(float(surface.triangles.max())) for surface in data.surfaces]


def test_each_class_is_divided_by_the_seed(folder):
    train, test = load_shapes_folder(folder, scale=False)
    assert train.classes == test.classes == ("chair", "table")
    assert sorted(sides(train) + sides(test)) == [*range(1, 11), *range(100, 105)]
    for data in (train, test):
        assert [side >= 100 for side in sides(data)] == data.labels.bool().tolist()
        assert min(data.class_sizes()) >= 1
    assert sides(load_shapes_folder(folder, scale=False).test) == sides(test)
    assert any(sides(load_shapes_folder(folder, scale=False, seed=seed).test) != sides(test) for seed in (1, 2, 3))
    assert test.name == "things (test, about 20% of each class for test, seed 0)"
    assert test.note == "15 shapes in all, unchanged"


def test_folders_train_and_test_are_taken_as_they_are(folder, tmp_path):
    for part in ("train", "test"):
        shutil.copytree(folder, tmp_path / "fixed" / part)
    for number in range(3):
        for name, start in (("chair", 50), ("table", 200)):
            save(tmp_path / "fixed" / "train" / name / f"new{number}.off", start + number)
    train, test = load_shapes_folder(tmp_path / "fixed", scale=False)
    assert sorted(sides(train)) == [50, 51, 52, 200, 201, 202]
    assert len(test) == 15
    assert (test.name, test.note) == ("fixed (test)", "21 shapes in all, unchanged; 15 copies left out")


def test_shapes_are_scaled_to_radius_1_unless_asked_otherwise(folder):
    train, _ = load_shapes_folder(folder)
    for surface in train.surfaces:
        assert torch.linalg.vector_norm(surface.triangles, dim=-1).max() == pytest.approx(1)
    assert train.note == "15 shapes in all, centred and scaled to radius 1"


def test_kinds_of_files_may_be_mixed_and_others_are_counted(folder):
    generator = np.random.default_rng(0)
    np.save(folder / "chair" / "cloud.npy", generator.random((50, 3)))
    np.savetxt(folder / "chair" / "cloud.XYZ", generator.random((60, 3)))
    (folder / "chair" / "notes.txt").write_text("mine")
    (folder / "chair" / ".hidden.off").write_text("nothing")
    os.mkfifo(folder / "chair" / "pipe.off")
    seen = []
    train, test = load_shapes_folder(folder, watch=lambda number, count: seen.append((number, count)))
    kinds = [type(surface) for data in (train, test) for surface in data.surfaces]
    assert (kinds.count(Cloud), kinds.count(Mesh)) == (2, 15)
    assert train.note.endswith("; 1 files ignored that are not shapes")
    assert seen == [(number, 17) for number in range(1, 18)]


def test_dense_shapes_are_kept_as_points(folder, monkeypatch):
    monkeypatch.setattr(shapes_folder, "DENSE", 40)
    np.save(folder / "chair" / "at most.npy", np.random.default_rng(0).random((40, 3)))
    np.save(folder / "chair" / "more.npy", np.random.default_rng(1).random((41, 3)))
    triangles = "".join(f"3 0 1 {2 + number % 2}\n" for number in range(50))
    (folder / "chair" / "more.off").write_text("OFF\n4 50 0\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n" + triangles)
    train, test = load_shapes_folder(folder)
    clouds = [surface for data in (train, test) for surface in data.surfaces if isinstance(surface, Cloud)]
    assert [len(cloud.points) for cloud in clouds] == [40, 40, 40]
    assert "; 2 kept as 40 points each" in train.note
    again = [surface for data in load_shapes_folder(folder) for surface in data.surfaces if isinstance(surface, Cloud)]
    assert [cloud.tobytes() for cloud in again] == [cloud.tobytes() for cloud in clouds]


def test_all_damaged_shapes_are_named_at_once(folder):
    (folder / "table" / "a.off").write_text("OFF\n")
    with pytest.raises(DamagedFileError, match=r"table/a.off is .*OFF"):
        load_shapes_folder(folder)
    (folder / "chair" / "b.xyz").write_text("1 2\n")
    with pytest.raises(DamagedFileError, match=r"(?s)2 of 17 shapes cannot be used.*chair/b.xyz.*table/a.off"):
        load_shapes_folder(folder, test_fraction=0.01)


def test_without_trimesh_it_is_named_once(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(MissingPackageError, match=r"need trimesh: pip install 'equicaps\[shapes\]'"):
        load_shapes_folder(folder)


def test_wrong_folders_are_explained(folder, tmp_path):
    with pytest.raises(
        NotFoundError, match="nowhere is not a folder; expected a folder that contains a folder of shapes"
    ):
        load_shapes_folder(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="load_shapes_folder: test_fraction must lie between 0 and 1, but is 2"):
        load_shapes_folder(folder, test_fraction=2.0)
    (folder / "lamp").mkdir()
    with pytest.raises(UsageError, match=r"lamp holds no shape \(.npy, .obj, .off, .ply, .stl, .xyz\)"):
        load_shapes_folder(folder)
