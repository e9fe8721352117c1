import gzip
import struct

import numpy as np
import pytest

from equicaps.data import load_mnist


@pytest.fixture
def folder(tmp_path):
    """Four small files in MNIST's format: test gzipped, training not."""
    generator = np.random.default_rng(0)
    for name, count, pack in (("train", 5, False), ("t10k", 3, True)):
        images = generator.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        labels = np.arange(count, dtype=np.uint8)
        for kind, array in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
            content = header + array.tobytes()
            path = tmp_path / f"{name}-{kind}{'.gz' if pack else ''}"
            path.write_bytes(gzip.compress(content) if pack else content)
    return tmp_path


@pytest.mark.parametrize(("split", "count"), [("train", 5), ("test", 3)])
def test_reads_idx_files_gzipped_or_not(folder, split, count):
    digits = load_mnist(split, folder)
    images, labels = digits.images, digits.labels
    assert images.shape == (count, 1, 28, 28)
    assert 0 <= images.min() < images.max() <= 1
    assert labels.tolist() == list(range(count))


def test_the_environment_names_the_folder_or_its_parent(folder, monkeypatch):
    monkeypatch.setenv("EQUICAPS_DATA", str(folder))
    assert len(load_mnist("test").labels) == 3
    nested = folder / "data"
    nested.mkdir()
    (nested / "mnist").symlink_to(folder)
    monkeypatch.setenv("EQUICAPS_DATA", str(nested))
    assert len(load_mnist("test").labels) == 3


def test_missing_and_truncated_files_are_named(folder, monkeypatch):
    monkeypatch.delenv("EQUICAPS_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"set EQUICAPS_DATA.*train-images-idx3-ubyte"):
        load_mnist("train")
    with pytest.raises(FileNotFoundError, match="no t10k-images-idx3-ubyte"):
        load_mnist("test", folder / "nowhere")
    path = folder / "train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"train-images-idx3-ubyte .* is truncated"):
        load_mnist("train", folder)
