import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from equicaps.data import load_modelnet10, modelnet10
from equicaps.data.modelnet10 import COUNTS, FILE, digest
from equicaps.errors import DamagedFileError, NotFoundError

REAL = os.environ.get("EQUICAPS_DATA")


def small_set():
    """Three training and two test grids; one of each is empty."""
    grids = np.zeros((5, 30, 30, 30), np.uint8)
    grids[0, 3:27, 10:20, 14] = grids[2, 5, 5:8, 3:27] = grids[4, 15, 15, 15] = 1
    packed = np.packbits(grids.reshape(5, -1), axis=1)
    return {
        "X_train_packed": packed[:3],
        "y_train": np.array([0, 0, 1], np.uint8),
        "X_test_packed": packed[3:],
        "y_test": np.array([0, 1], np.uint8),
        "shape": np.array([30, 30, 30]),
        "classes": np.array(["bathtub", "bed"]),
    }


def npz(fields):
    file = io.BytesIO()
    np.savez_compressed(file, **fields)
    return file.getvalue()


@pytest.fixture
def fields(monkeypatch):
    """Their checksum stands for the real one."""
    made = small_set()
    monkeypatch.setattr(modelnet10, "SHA256", digest(made))
    return made


@pytest.fixture
def folder(fields, tmp_path):
    path = tmp_path / "data" / "modelnet10"
    path.mkdir(parents=True)
    (path / FILE).write_bytes(npz(fields))
    return path


def test_grids_become_surfaces_around_the_middle(folder):
    data = load_modelnet10("train", folder)
    assert data.name == "ModelNet10 (train, voxels)"
    assert (data.classes, data.labels.tolist()) == (("bathtub", "bed"), [0, 0, 1])
    assert data.note.endswith("1 grids are empty, and their points are zeros")
    plate, empty, bar = data.sample(2000)
    torch.testing.assert_close(plate.amin(0), torch.tensor([-12.0, -5, -1]) / 12, atol=0.01, rtol=0)
    torch.testing.assert_close(plate.amax(0), torch.tensor([12.0, 5, 0]) / 12, atol=0.01, rtol=0)
    assert empty.abs().max() == 0
    torch.testing.assert_close(bar.amin(0), torch.tensor([-10.0, -10, -12]) / 12, atol=0.01, rtol=0)
    torch.testing.assert_close(bar.amax(0), torch.tensor([-9.0, -7, 12]) / 12, atol=0.01, rtol=0)
    test = load_modelnet10("test", folder.parent)
    assert test.labels.tolist() == [0, 1]
    assert test.sample(100)[1].abs().max() <= 1 / 12


def test_the_environment_names_the_folder(folder, monkeypatch):
    monkeypatch.setenv("EQUICAPS_DATA", str(folder.parent))
    assert len(load_modelnet10("test")) == 2


@pytest.mark.parametrize("offline", ["0", "1"])
def test_where_there_is_no_file_the_error_says_where_it_comes_from(monkeypatch, offline):
    monkeypatch.setenv("EQUICAPS_OFFLINE", offline)
    with pytest.raises(
        NotFoundError, match=r"ModelNet10: modelnet10_vox30.npz not found in .*cache/modelnet10"
    ) as found:
        load_modelnet10("train")
    for hint in ("Put the missing files into", "amitregmi/VoxNet-Google-Colab", "docs/data.md", "academic research"):
        assert hint in str(found.value)


def damaged(fields):
    whole = npz(fields)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    pickled = io.BytesIO()
    np.savez(pickled, **{**fields, "classes": fields["classes"].astype(object)})
    return {
        "truncated": (whole[:-200], "truncated, corrupted or not the file"),
        "empty": (b"", "truncated, corrupted or not the file"),
        "flipped": (bytes(flipped), "corrupted or not the file"),
        "pickle": (pickled.getvalue(), "truncated, corrupted or not the file"),
        "foreign": (npz({"other": np.zeros(3)}), "'X_train_packed is not a file in the archive'"),
        "labels": (npz({**fields, "y_test": fields["y_test"][::-1]}), "it holds .* with sha256 .*, not"),
        "classes": (npz({**fields, "classes": fields["classes"][::-1]}), "it holds .* with sha256 .*, not"),
    }


@pytest.mark.parametrize("case", damaged(small_set()))
def test_a_damaged_or_foreign_file_is_named(folder, fields, case):
    content, message = damaged(fields)[case]
    (folder / FILE).write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"{FILE} is .*{message}.*Replace it"):
        load_modelnet10("test", folder)


def test_the_real_file_has_the_official_classes():
    path = Path(REAL or "nowhere", "modelnet10", FILE)
    if not path.exists():
        pytest.skip("EQUICAPS_DATA holds no ModelNet10")
    data = load_modelnet10("test", path.parent)
    assert len(data) == COUNTS["test"]
    assert data.class_sizes() == [50, 100, 100, 86, 86, 100, 86, 100, 100, 100]
    assert data.classes[:3] == ("bathtub", "bed", "chair")
    assert sum(not len(surface.faces) for surface in data.surfaces) == 1
    points = data.sample(256)
    assert points.abs().max() <= 1
    beds = points[data.labels == 1]
    assert beds[..., 2].std() < 0.6 * min(beds[..., 0].std(), beds[..., 1].std())  # the third axis points up
    with np.load(path) as arrays:
        sizes = np.bincount(arrays["y_train"])
    assert sizes.tolist() == [106, 515, 889, 200, 200, 465, 200, 680, 392, 344]
    assert sizes.sum() == COUNTS["train"]
