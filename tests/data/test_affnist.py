import io
import sys
import zipfile

import numpy as np
import pytest
import torch
from scipy.io import savemat

from equicaps.data import affnist, cache_folder, load_affnist
from equicaps.errors import DamagedFileError

COUNTS = {"train": 4, "valid": 3, "test": 3}


def batch(count, seed=0, **changes):
    """The fields of an official file: an image is a column, its rows one after the other."""
    images = np.random.default_rng(seed).integers(0, 256, (1600, count), dtype=np.uint8)
    labels = np.arange(count, dtype=np.uint8)[None]
    fields = {"human_readable_transform": "", "image": images, "label_int": labels} | changes
    return {"affNISTdata": fields}


def mat(content):
    file = io.BytesIO()
    savemat(file, content, do_compression=True)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(affnist, "COUNTS", COUNTS)
    for part, split in (("training_batches", "train"), ("test_batches", "test")):
        (tmp_path / part).mkdir()
        for number in (1, 2):
            (tmp_path / part / f"{number}.mat").write_bytes(mat(batch(COUNTS[split], seed=number)))
    return tmp_path


def test_batches_are_read_one_after_the_other(folder):
    data = load_affnist("test", folder, batches=2)
    assert data.name == "affNIST (test, 2 of 32 batches)"
    assert data.images.shape == (6, 1, 40, 40)
    assert data.labels.tolist() == [0, 1, 2, 0, 1, 2]
    second = batch(3, seed=2)["affNISTdata"]["image"]
    assert torch.equal((data.images[3] * 255).round().byte().flatten(), torch.from_numpy(second[:, 0].copy()))
    assert len(load_affnist("train", folder)) == 4


@pytest.mark.parametrize("batches", [0, 33])
def test_other_numbers_of_batches_are_refused(folder, batches):
    with pytest.raises(ValueError, match=f"ask for 1 to 32 of them, not {batches}"):
        load_affnist("test", folder, batches=batches)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (mat(batch(3))[:-200], "truncated, corrupted"),
        (b"", "truncated, corrupted"),
        (mat({"other": 1}), "truncated, corrupted or not a batch of affNIST"),
        (mat(batch(2)), r"images \(1600, 2\) uint8 and labels \(2,\), but expected \(1600, 3\)"),
        (mat(batch(3, label_int=np.array([[0, 1, 10]], np.uint8))), "labels must be 0 to 9"),
    ],
    ids=["truncated", "empty", "other", "short", "label"],
)
def test_a_damaged_file_is_named(folder, content, message):
    (folder / "test_batches" / "1.mat").write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"test_batches/1.mat is .*{message}"):
        load_affnist("test", folder)


def test_without_scipy_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.io", None)
    with pytest.raises(ImportError, match=r"need scipy: pip install 'equicaps\[data\]'"):
        load_affnist("test", folder)


def test_the_official_archive_is_fetched_checked_and_unpacked_once(server, monkeypatch):
    monkeypatch.setattr(affnist, "COUNTS", COUNTS)
    monkeypatch.setattr(affnist, "URL", server.url)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for number in range(1, 33):
            zipped.writestr(f"validation_batches/{number}.mat", mat(batch(3, seed=number)))
    content = bytearray(packed.getvalue())
    content[200] ^= 1
    server.files["validation_batches.zip"] = bytes(content)
    with pytest.raises(
        FileNotFoundError, match=r"validation_batches.zip is truncated or corrupted: .*regenerate_affnist"
    ):
        load_affnist("valid")
    server.files["validation_batches.zip"] = packed.getvalue()[:-50]
    with pytest.raises(FileNotFoundError, match=r"validation_batches.zip is truncated or corrupted: File is not a zip"):
        load_affnist("valid")
    server.files["validation_batches.zip"] = packed.getvalue()
    assert len(load_affnist("valid")) == 3
    assert len(load_affnist("valid", batches=32)) == 96
    assert len(server.requests) == 3
    assert not list((cache_folder() / "affnist").glob("*.zip"))
