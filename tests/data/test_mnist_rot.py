import hashlib
import io
import zipfile

import numpy as np
import pytest
import torch

from equicaps.data import cache_folder, load_mnist_rot, mnist_rot
from equicaps.errors import DamagedFileError

NAMES = {kind: f"mnist_all_rotation_normalized_float_{kind}.amat" for kind in ("train_valid", "test")}
COUNTS = {"train": 10, "valid": 2, "test": 5}


def amat(rows):
    """As the official files: three spaces, exponents, the label last."""
    return "\n".join("   " + "   ".join(f"{value:.7e}" for value in row) for row in rows) + "\n"


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(mnist_rot, "COUNTS", COUNTS)
    generator = np.random.default_rng(0)
    return {
        kind: np.c_[generator.random((count, 784), dtype=np.float32), np.arange(count) % 10]
        for kind, count in (("train_valid", 12), ("test", 5))
    }


@pytest.fixture
def folder(rows, tmp_path):
    for kind, values in rows.items():
        (tmp_path / NAMES[kind]).write_text(amat(values))
    return tmp_path


def test_training_and_validation_are_the_first_and_the_last_rows(folder, rows):
    """10,000 and 2,000 in small: nothing in both, nothing left out."""
    train, valid, test = (load_mnist_rot(split, folder) for split in COUNTS)
    for data, expected in (
        (train, rows["train_valid"][:10]),
        (valid, rows["train_valid"][10:]),
        (test, rows["test"]),
    ):
        images = torch.from_numpy(expected[:, :-1]).float().reshape(-1, 1, 28, 28)
        torch.testing.assert_close(data.images, images, rtol=1e-6, atol=1e-6)
        assert data.labels.tolist() == expected[:, -1].tolist()
    assert train.name == "MNIST-rot (train)"


def test_the_official_sizes():
    assert mnist_rot.COUNTS == {"train": 10_000, "valid": 2_000, "test": 50_000}


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda text: text[: len(text) // 2], "is truncated or not the official file"),
        (lambda text: text.replace("e", "x", 1), "something that is not a number"),
        (lambda text: text.replace("e-0", "e+2", 1), r"pixels must lie in \[0, 1\]"),
        (lambda text: text.rstrip()[:-3] + "+01\n", "last column must be 0 to 9"),
        (lambda text: "", "is truncated"),
    ],
    ids=["truncated", "letters", "range", "label", "empty"],
)
def test_a_damaged_file_is_named(folder, harm, message):
    path = folder / NAMES["test"]
    path.write_text(harm(path.read_text()))
    with pytest.raises(DamagedFileError, match=rf"{NAMES['test']} .*{message}"):
        load_mnist_rot("test", folder)


def archive(rows):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for kind, values in rows.items():
            zipped.writestr(NAMES[kind], amat(values))
    return packed.getvalue()


def test_the_official_archive_is_fetched_checked_and_unpacked_once(rows, server, monkeypatch):
    content = archive(rows)
    server.files["mnist_rotation_new.zip"] = content
    monkeypatch.setattr(mnist_rot, "URL", f"{server.url}mnist_rotation_new.zip")
    with pytest.raises(FileNotFoundError, match=r"expected md5:0f9a.* but got .*regenerate_mnist_rot"):
        load_mnist_rot("test")
    monkeypatch.setattr(mnist_rot, "MD5", hashlib.md5(content).hexdigest())
    assert len(load_mnist_rot("test")) == 5
    assert len(load_mnist_rot("train")) == 10
    assert len(server.requests) == 2
    assert sorted(path.name for path in (cache_folder() / "mnist_rot").glob("m*")) == sorted(NAMES.values())
