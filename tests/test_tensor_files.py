"""A file is intact or refused with the reason; a failure to write is reported and does no harm."""

import contextlib
import errno
import hashlib
import json
import os
import resource
import signal
import subprocess
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save as serialise
from safetensors.torch import save_file
from small_training import ROTATED, config, digits, network

from equicaps import _tensor_files as module
from equicaps import load
from equicaps._files import prepare_folder, write_bytes
from equicaps._tensor_files import read_tensors, write_tensors
from equicaps.errors import DamagedFileError, FileError
from equicaps.inference.model_files import MODEL, read_model
from equicaps.training import load_checkpoint
from equicaps.training import train as run
from equicaps.training.checkpoint import CHECKPOINT, DAMAGED, PREVIOUS

TENSORS = {
    "scalar": torch.tensor(3.5),
    "flags": torch.tensor([True, False]),
    "count": torch.arange(5),
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "none": torch.zeros(0, 2),
}
CONTENT = {"step": 3, "curve": [{"accuracy": 1 / 3}], "name": "Größe"}


@pytest.fixture
def path(tmp_path):
    write_tensors(tmp_path / "file.safetensors", "checkpoint", TENSORS, CONTENT)
    return tmp_path / "file.safetensors"


def test_what_is_written_is_read(path):
    tensors, content = read_tensors(path, "checkpoint")
    assert content == CONTENT
    assert tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert tensors[name].dtype == value.dtype
        assert torch.equal(tensors[name], value)


@pytest.mark.parametrize("fraction", [0.0, 0.001, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_file_is_refused(path, fraction):
    whole = path.read_bytes()
    path.write_bytes(whole[: int(fraction * len(whole))])
    with pytest.raises(DamagedFileError, match=r"file\.safetensors is (truncated|damaged|empty|not a)"):
        read_tensors(path, "checkpoint")


def version_1(tensors, content):
    """A file as the first version wrote it: format and version are not part of the checksum."""
    tensors = {name: value.contiguous() for name, value in tensors.items()}
    text = json.dumps(content)
    digest = hashlib.blake2b(text.encode(), digest_size=16)
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.numpy().tobytes())
    header = {"format": "equicaps checkpoint", "version": "1", "content": text, "checksum": digest.hexdigest()}
    return serialise(tensors, header)


def test_the_first_version_is_still_read(path):
    path.write_bytes(version_1(TENSORS, CONTENT))
    tensors, content = read_tensors(path, "checkpoint")
    assert content == CONTENT
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())


@pytest.mark.parametrize("version", [1, 2])
def test_one_altered_bit_is_noticed_wherever_it_is(path, version):
    """No altered bit of the file, header included, is accepted or taken for anything but damage."""
    whole = version_1(TENSORS, CONTENT) if version == 1 else path.read_bytes()
    assert f'"version":"{version}"'.encode() in whole  # guard
    for place in range(8 * len(whole)):
        altered = bytearray(whole)
        altered[place // 8] ^= 1 << place % 8
        path.write_bytes(altered)
        try:
            read_tensors(path, "checkpoint")
        except DamagedFileError:
            continue
        except Exception as error:
            pytest.fail(f"bit {place % 8} of {whole[: place // 8 + 1][-30:]}: {error!r}")
        pytest.fail(f"bit {place % 8} of {whole[: place // 8 + 1][-30:]} is accepted")


def test_foreign_files_are_refused_by_name(path):
    save_file(TENSORS | {"transposed": torch.zeros(2)}, path)
    with pytest.raises(FileError, match="was not written by equicaps"):
        read_tensors(path, "checkpoint")
    path.write_text("step,loss\n1,2\n" * 20)
    with pytest.raises(FileError, match="not a safetensors file"):
        read_tensors(path, "checkpoint")


def test_a_model_is_not_a_checkpoint(path):
    with pytest.raises(FileError, match="equicaps checkpoint, but an equicaps model is needed"):
        read_tensors(path, "model")


def test_a_newer_version_says_to_update(path, monkeypatch):
    monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    write_tensors(path, "checkpoint", TENSORS, CONTENT)
    monkeypatch.undo()
    with pytest.raises(FileError, match="update equicaps"):
        read_tensors(path, "checkpoint")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*nothing\.safetensors: No such file"):
        read_model(tmp_path / "nothing.safetensors")
    with pytest.raises(FileError, match="contains no training"):
        load_checkpoint(tmp_path)


def train(folder, steps=3, **options):
    return run(config(steps), digits(), ROTATED, folder=folder, network=network(), **options)


def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, caplog):
    train(tmp_path)
    whole = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(whole[:-100])
    assert load_checkpoint(tmp_path)[1]["step"] == 2
    assert "Going back" in caplog.text
    (tmp_path / PREVIOUS).write_bytes(b"")
    with pytest.raises(DamagedFileError):
        load_checkpoint(tmp_path)


def test_after_going_back_the_damaged_checkpoint_does_not_replace_the_intact_one(tmp_path, monkeypatch):
    """Whatever happens while the next one is written, there is an intact one."""
    train(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    whole = (tmp_path / PREVIOUS).read_bytes()
    replace_file = os.replace

    def power_cut(source, target):
        if os.path.basename(target) == CHECKPOINT:
            raise OSError(errno.EIO, "power cut")
        replace_file(source, target)

    monkeypatch.setattr("os.replace", power_cut)
    with pytest.raises(FileError, match="power cut"):
        train(tmp_path, resume=True)
    monkeypatch.undo()
    assert (tmp_path / PREVIOUS).read_bytes() == whole
    assert (tmp_path / DAMAGED).read_bytes() == b"damaged"
    assert load_checkpoint(tmp_path)[1]["step"] == 2
    assert train(tmp_path, resume=True).finished


def test_looking_at_a_damaged_checkpoint_changes_nothing(tmp_path):
    train(tmp_path)
    (tmp_path / CHECKPOINT).write_bytes(b"damaged")
    load_checkpoint(tmp_path)
    assert (tmp_path / CHECKPOINT).read_bytes() == b"damaged"


@pytest.mark.parametrize("reason", ["newer", "other kind"])
def test_a_checkpoint_that_is_not_damaged_does_not_fall_back(tmp_path, monkeypatch, reason):
    train(tmp_path)
    if reason == "newer":
        monkeypatch.setattr(module, "VERSION", module.VERSION + 1)
    kind = "checkpoint" if reason == "newer" else "model"
    write_tensors(tmp_path / CHECKPOINT, kind, TENSORS, CONTENT)
    monkeypatch.undo()
    with pytest.raises(FileError, match=r"update equicaps|is needed") as caught:
        load_checkpoint(tmp_path)
    assert not isinstance(caught.value, DamagedFileError)


def test_a_full_disk_is_reported_and_the_checkpoint_before_stays(tmp_path):
    """A full disk for real, where a small file system can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here; see the test with a limit on files")

    def fill(progress):
        if progress.step == 3:
            with open(disk / "else", "wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))

    try:
        with pytest.raises(FileError, match="the disk is full"):
            train(disk / "run", 10, watch=fill)
        assert load_checkpoint(disk / "run")[1]["step"] == 2
        (disk / "else").unlink()
        assert train(disk / "run", 10, resume=True).finished
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_quota_that_is_used_up_is_called_so_and_the_old_file_stays(tmp_path, monkeypatch):
    write_bytes(tmp_path / "file", b"old")

    def refuse(*args):
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr("os.fsync", refuse)
    with pytest.raises(FileError, match=r"\(quota\) is used up\. Free some space; the old file is unchanged"):
        write_bytes(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_that_the_system_does_not_allow_is_reported_and_the_old_one_stays(tmp_path):
    write_bytes(tmp_path / "file", b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(FileError, match="larger than this system allows"):
            write_bytes(tmp_path / "file", bytes(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert (tmp_path / "file").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_cannot_be_created_is_reported_before_the_training(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match=r"cannot create the folder .*file/run: Not a directory"):
        train(tmp_path / "file" / "run")


def test_a_read_only_folder_is_reported_before_the_training(tmp_path):
    """root may write anywhere except into a read-only file system."""
    readonly = "/proc/self" if os.geteuid() == 0 else tmp_path
    if os.geteuid():
        tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="cannot"):
        prepare_folder(type(tmp_path)(readonly))


@pytest.mark.parametrize("code", ["EROFS", "EACCES"])
def test_read_only_is_called_read_only(code, tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(getattr(errno, code), "no")

    monkeypatch.setattr("equicaps._files.open", refuse, raising=False)
    with pytest.raises(FileError, match=r"is read-only for this user\. Choose another folder"):
        prepare_folder(tmp_path)


def test_a_model_travels_with_its_description(tmp_path):
    settings = config(2)
    settings = replace(settings, model=replace(settings.model, preset="steerable_cnn", num_classes=3))
    result = run(settings, digits(), ROTATED, folder=tmp_path)
    loaded = load(tmp_path)
    assert loaded.classes == ("thin", "broad", "square")
    assert loaded.card.data == "bars"
    images = ROTATED(digits(4).images).images
    assert torch.equal(loaded.network(images).scores, result.network(images).scores)
    record = json.loads((tmp_path / "result.json").read_text())
    assert record["images_seen"] == 16
    assert record["config"]["seed"] == 0
    assert {"commit", "cpu_seconds", "data", "torch"} <= record.keys()


def test_a_model_that_cannot_be_built_is_reported(tmp_path):
    write_tensors(tmp_path / MODEL, "model", TENSORS, {"config": {"model": {"preset": "steerable"}}})
    with pytest.raises(FileError, match=r"has no weights 'body.*', which the network that it describes needs"):
        read_model(tmp_path / MODEL)
    write_tensors(tmp_path / MODEL, "model", TENSORS, {"config": {"model": {"preset": "enormous"}}})
    with pytest.raises(FileError, match="cannot build"):
        read_model(tmp_path / MODEL)
