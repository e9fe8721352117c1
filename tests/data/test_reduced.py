"""The images of a folder are decoded once, stay in a file, and are decoded again when anything has changed."""

import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image

from equicaps.data import cache_folder, load_folder
from equicaps.errors import DamagedFileError, FileError, UsageError
from equicaps.images import ROTATED, decode
from equicaps.training.sampler import Sampler

LONG_AGO = time.time() - 1000


def save(path, array, when=LONG_AGO):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)
    os.utime(path, (when, when))


def picture(seed, shape=(8, 8)):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


@pytest.fixture
def folder(tmp_path):
    """Ten cats and ten dogs that nobody has touched for a while."""
    for number, name in itertools.product(range(10), ("cat", "dog")):
        save(tmp_path / "pets" / name / f"{number}.png", picture(2 * number + (name == "dog")))
    return tmp_path / "pets"


@pytest.fixture
def decoded(monkeypatch):
    """The names of the files that are decoded."""
    names, read = [], decode.read_pixels
    monkeypatch.setattr(decode, "read_pixels", lambda file: names.append(file.name) or read(file))
    return names


def stored():
    """The file in the cache, of which there must be only one, and nothing half-written beside it."""
    [folder] = (cache_folder() / "folders").iterdir()
    assert {path.name for path in folder.iterdir()} <= {".lock", "images.bin"}
    return folder / "images.bin"


def same(one, other):
    pairs = zip(one, other, strict=True)
    return all(torch.equal(a.images[:], b.images[:]) and torch.equal(a.labels, b.labels) for a, b in pairs)


def test_images_are_decoded_once_whatever_the_division(folder, decoded):
    calls = []
    first = load_folder(folder, watch=lambda *call: calls.append(call))
    assert calls == [(number, 20) for number in range(1, 21)]
    assert len(decoded) == 20
    again = load_folder(folder, watch=lambda *call: calls.append(call))
    assert same(first, again)
    other = load_folder(folder, seed=3, test_fraction=0.5)
    assert not same(first, other)  # guard: another division
    assert (len(calls), len(decoded)) == (20, 20)
    assert (again.train.note, again.train.background) == (first.train.note, first.train.background)
    load_folder(folder, size=4)
    assert len(decoded) == 40
    assert load_folder(folder, size=4).test.images.shape[-2:] == (4, 4)
    assert len(decoded) == 40


@pytest.mark.parametrize("change", ["content", "time", "added", "removed", "renamed"])
def test_what_has_changed_is_noticed(folder, decoded, change):
    """Control: without a change, nothing is decoded; see above."""
    before = load_folder(folder)
    file, count = folder / "cat" / "3.png", 20
    if change == "content":
        save(file, picture(99), LONG_AGO + 1)
    elif change == "time":  # the same content, which cannot be known without reading it
        os.utime(file, (LONG_AGO, LONG_AGO + 1))
    elif change == "added":
        save(folder / "cat" / "new.png", picture(99))
        count = 21
    elif change == "removed":
        file.unlink()
        count = 19
    else:
        file.rename(folder / "cat" / "30.png")
    after = load_folder(folder)
    assert len(decoded) == 20 + count
    assert same(before, after) == (change in ("time", "renamed"))
    assert same(after, load_folder(folder))
    assert len(decoded) == 20 + count
    stored()


def test_a_file_that_was_written_a_moment_ago_may_be_written_again_unnoticed(folder, decoded):
    """Two changes within one tick of the file system's clock: such images are not taken from the cache."""
    save(folder / "cat" / "3.png", picture(99), time.time())
    load_folder(folder)
    load_folder(folder)
    assert len(decoded) == 40


def test_other_code_prepares_images_anew(folder, decoded, monkeypatch):
    load_folder(folder)
    monkeypatch.setattr("equicaps.data.reduced._code", lambda: "of the next version")
    load_folder(folder)
    assert len(decoded) == 40


@pytest.mark.parametrize("harm", ["pixel", "description", "checksum", "truncated", "longer", "empty", "swapped"])
def test_a_damaged_file_is_replaced_and_not_believed(folder, decoded, harm):
    expected = load_folder(folder)
    images = [part.images[:] for part in expected]
    path = stored()
    content = bytearray(path.read_bytes())
    if harm in ("pixel", "description", "checksum"):
        content[{"pixel": 100, "description": 20 * 64 + 30, "checksum": -1}[harm]] ^= 1
    elif harm == "swapped":
        content[0], content[1] = content[1], content[0]
    else:
        content = {"truncated": content[:-50], "longer": content + b"\0", "empty": b""}[harm]
    path.unlink()  # the old one is still mapped
    path.write_bytes(content)
    found = load_folder(folder)
    assert len(decoded) == 40
    assert all(torch.equal(part.images[:], image) for part, image in zip(found, images, strict=True))
    load_folder(folder)
    assert len(decoded) == 40


def test_images_of_16_bits_stay_so_fine(folder):
    """A camera of 12 bits uses a sixteenth of the range: bytes would leave it 16 levels."""
    for number in range(16):
        save(folder / "cat" / f"deep{number}.png", (1000 + 7 * picture(number, (8, 8)).astype(np.uint16)))
    train, _ = load_folder(folder)
    faint = train.images[:][train.images[:].amax((1, 2, 3)) < 0.05]
    assert len(faint) > 5
    assert len(faint[0].unique()) > 40
    bright = train.images[:][train.images[:].amax((1, 2, 3)) > 0.5]
    torch.testing.assert_close(bright * 255, (bright * 255).round(), rtol=0, atol=0.01)


def test_parts_of_a_set_copy_no_image(folder):
    train, _ = load_folder(folder)
    rest, held = train.hold_back(6)
    for part in (rest, held, train.some(5), train.balanced(), train.take([3, 1])):
        assert np.shares_memory(part.images.pixels, train.images.pixels)
        assert part.images[:].shape[0] == len(part.images) == len(part.labels)
    assert train.balanced().different == len(train)
    assert torch.equal(train.take([3, 1]).images[:], train.images[:][[3, 1]])
    assert torch.equal(train.take([3, 1]).images[1], train.images[:][1])
    assert torch.equal(torch.cat(list(train.images.split(4))), train.images[:])
    assert "x 1 x 8 x 8" in repr(train.images)


MEASURE = """
import sys, torch
from pathlib import Path
from equicaps.data import load_folder
from equicaps.images import Augmentation
from equicaps.training.sampler import Sampler

def peak():  # of this program alone: resource.getrusage also counts what the process was before
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024

def use(folder):
    train, test = load_folder(folder)
    rest, held = train.balanced().hold_back(3)
    sampler = Sampler(rest, Augmentation(32, rotation=180.0), images=4, views=2, seed=0)
    for step in range(10):
        sampler.batch(step)
    return peak()

few = use(sys.argv[1])
print(use(sys.argv[2]) - few)
images = [part.images[:] for part in load_folder(sys.argv[2])]
print(peak() - few)
"""


def test_memory_does_not_grow_with_the_folder(tmp_path):
    """160 MB of floats, of which the process may map 40 MB of bytes; control: as tensors they need all of it."""
    rng = np.random.default_rng(0)
    for kind, count in (("few", 10), ("many", 160)):
        for number in range(count):
            array = np.zeros((512, 512), dtype=np.uint8)
            array[8:16, 8:16] = rng.integers(0, 256, (8, 8), dtype=np.uint8)
            save(tmp_path / kind / "ab"[number % 2] / f"{number}.bmp", array)
    command = [sys.executable, "-c", MEASURE, tmp_path / "few", tmp_path / "many"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more, as_tensors = map(float, done.stdout.split())
    assert more < 70
    assert as_tensors > 130


TOGETHER = """
import sys, time
from equicaps.data import load_folder

calls = []
train, _ = load_folder(sys.argv[1], watch=lambda *call: (calls.append(call), time.sleep(0.01)))
print(len(calls), float(train.images[:].sum()))
"""


def test_two_processes_at_once_decode_once(folder):
    """The second one waits, or comes later; it reads what the first one wrote."""
    for file in folder.rglob("*.*"):
        os.utime(file, (1e9, 1e9))  # settled long ago
    command = [sys.executable, "-c", TOGETHER, str(folder)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    found = [process.communicate()[0].split() for process in both]
    assert sorted(int(calls) for calls, _ in found) == [0, 20]
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("moment", ["decoding", "full disk", "not allowed", "too full before"])
def test_nothing_half_written_stays(folder, monkeypatch, decoded, moment):
    if moment == "decoding":

        def interrupt(done, images):
            if done == 5:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load_folder(folder, watch=interrupt)
    elif moment == "full disk":
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(FileError, match=r"the disk is full.*EQUICAPS_CACHE"):
                load_folder(folder)
    elif moment == "too full before":
        usage = shutil.disk_usage("/")._replace(free=1000)
        with monkeypatch.context() as patch:
            patch.setattr("shutil.disk_usage", lambda path: usage)
            with pytest.raises(FileError, match=r"disk is full but for.*EQUICAPS_CACHE"):
                load_folder(folder)
        assert decoded == []
    else:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
        try:
            with pytest.raises(FileError, match=r"larger than this system allows.*EQUICAPS_CACHE"):
                load_folder(folder)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
            signal.signal(signal.SIGXFSZ, before)
    assert not stored().exists()
    assert len(load_folder(folder).train) > 10


def test_a_file_that_disappears_while_others_are_read_is_named(folder):
    gone = folder / "dog" / "9.png"
    with pytest.raises(FileError, match=r"cannot read .*dog/9\.png: No such file or directory\.$"):
        load_folder(folder, watch=lambda done, images: gone.unlink(missing_ok=True))
    assert not stored().exists()


def one_class(folder):
    shutil.rmtree(folder / "dog")


def empty_class(folder):
    for file in (folder / "dog").iterdir():
        file.unlink()


def unreadable_class(folder):
    for file in (folder / "dog").iterdir():
        file.write_bytes(file.name.encode())


def truncated(folder):
    for file in (folder / "cat" / "3.png", folder / "dog" / "5.png"):
        file.write_bytes(file.read_bytes()[:60])


def text_and_truncated(folder):
    (folder / "cat" / "3.png").write_text("no image")
    truncated_file = folder / "dog" / "5.png"
    truncated_file.write_bytes(truncated_file.read_bytes()[:60])


def tiny_and_long(folder):
    save(folder / "dog" / "tiny.png", picture(50, (1, 1)))
    save(folder / "dog" / "long.png", picture(51, (30, 20_000)))


def grey_and_colour(folder):
    save(folder / "dog" / "colour.png", picture(52, (8, 8, 3)))


def listed(folder, *rows):
    names = [f"{name}/{number}.png,{name}" for number in range(10) for name in ("cat", "dog")]
    (folder / "list.csv").write_text("\n".join(["file,label", *names, *rows]))
    return folder / "list.csv"


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [
        (one_class, UsageError, "at least two classes are needed, each a folder of images; found only 'cat'"),
        (empty_class, UsageError, r"dog holds no image .*; add some or remove the folder"),
        (unreadable_class, DamagedFileError, r"(?s)10 of 20 images cannot be used.*dog/0\.png is not a readable image"),
        (truncated, DamagedFileError, r"(?s)2 of 20 .*them:\n  .*cat/3\.png is trunc.*\n  .*dog/5\.png is trunc"),
        (
            text_and_truncated,
            DamagedFileError,
            r"(?s)2 of 20 .*them:\n  .*cat/3\.png is not .*\n  .*dog/5\.png is trunc",
        ),
        (lambda folder: listed(folder, "dog/30.png,dog"), UsageError, r"row 22: .*dog/30\.png is not a file"),
    ],
    ids=[
        "one class",
        "empty class",
        "unreadable class",
        "truncated files",
        "text and a truncated file",
        "list with a missing file",
    ],
)
def test_bad_input_is_explained_and_nothing_is_written(folder, harm, error, message):
    given = harm(folder) or folder
    with pytest.raises(error, match=message):
        load_folder(given)
    assert not list((cache_folder() / "folders").glob("*/*.bin"))


@pytest.mark.parametrize(
    ("harm", "count", "channels"),
    [
        (tiny_and_long, 22, 1),
        (grey_and_colour, 21, 3),
        (lambda folder: listed(folder, "dog/3.png,dog", "dog/3.png,dog"), 20, 1),
    ],
    ids=["1x1 and 20000x30", "grey and colour", "list with repeated rows"],
)
def test_odd_input_works(folder, harm, count, channels):
    splits = load_folder(harm(folder) or folder)
    assert sum(map(len, splits)) == count
    for data in splits:
        assert data.images.shape[1:] == (channels, 8, 8)
        assert 0 <= data.images[:].amin() < data.images[:].amax() <= 1
    views = Sampler(splits.train, ROTATED, images=4, views=2, seed=0).batch(0).views
    assert views.shape == (8, channels, 32, 32)


def test_of_many_damaged_images_the_first_are_named(folder):
    for file in folder.glob("*/*.png"):
        file.write_bytes(f"no image: {file}".encode())
    with pytest.raises(DamagedFileError, match=r"20 of 20 images") as raised:
        load_folder(folder)
    assert str(raised.value).count("is not a readable image") == 10
    assert str(raised.value).endswith("and 10 more")


def test_what_nobody_has_used_for_long_is_deleted_when_another_folder_is_read(folder, tmp_path):
    places = [shutil.copytree(folder, tmp_path / name) for name in ("unused", "used")]
    before = [load_folder(place)[0] for place in places]
    files = sorted((cache_folder() / "folders").glob("*/images.bin"))
    assert len(files) == 2
    for file in files:
        os.utime(file, (0, 0))
    load_folder(places[1])  # which is a use
    load_folder(folder)
    left = sorted((cache_folder() / "folders").glob("*/images.bin"))
    assert len(left) == 2
    assert len({*files} & {*left}) == 1
    assert torch.equal(before[0].images[:], before[1].images[:])  # still readable by those who have it open
