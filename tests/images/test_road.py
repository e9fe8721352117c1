"""One road for images: whoever reads an image prepares it alike, and preparing commutes with quarter turns."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional as F

from equicaps.data.by_name import load_test_split
from equicaps.images import preparation as road
from equicaps.images.resizing import as_floats
from equicaps.inference import Canonicalizer, Card, PoseModel, audit, export
from equicaps.models import GroupCapsNet
from equicaps.serve.pictures import fitted, read_upload

ODD = [(41, 30), (9, 20), (28, 27)]
"""Heights and widths that differ by an odd number."""
SIZES = [*ODD, (29, 41), (40, 40), (37, 37), (32, 32), (1, 1)]
"""Larger and smaller than the frame, equal to it, and equal to the network's own input."""
KINDS = {"grey": ((), np.uint8), "colour": ((3,), np.uint8), "16 bit": ((), np.uint16), "transparent": ((4,), np.uint8)}
FORMATS = [(1, 28), (3, 27)]
"""Channels and frame; the network takes 32x32."""


def image(kind, size):
    """Noise, which no rotation maps to itself."""
    channels, dtype = KINDS[kind]
    generator = np.random.default_rng(sum(size))
    return generator.integers(0, np.iinfo(dtype).max, (*size, *channels), dtype, endpoint=True)


class WithoutPoses(PoseModel):
    """Finds no pose, so that setting an image upright only pads it to a square."""

    def predict(self, images, *, batch_size=250):
        return SimpleNamespace(angles=torch.full((len(images),), torch.nan))


@pytest.fixture(scope="module")
def models():
    return [
        WithoutPoses(
            GroupCapsNet.from_preset("steerable", in_channels=channels, num_classes=2),
            Card("test", "", "", ("a", "b"), (0.0, 0.0), frame=frame),
        )
        for channels, frame in FORMATS
    ]


class Reader:
    """Every way in which an image reaches a network; each gives what the network takes."""

    def __init__(self, folder):
        self.folder = folder
        for part in ("train", "test"):
            for number, name in enumerate(("a", "b")):
                (folder / part / name).mkdir(parents=True)
                Image.new("L", (8, 8), 40 * len(part) + number).save(folder / part / name / "other.png")
        self.file = folder / "test" / "a" / "image.png"

    def path(self, model, array):
        return model.prepare(self._saved(array))

    def bytes(self, model, array):
        return model.prepare(_encoded(array))

    def pillow(self, model, array):
        return model.prepare(Image.fromarray(array))

    def numpy(self, model, array):
        return model.prepare(array)

    def tensor(self, model, array):
        return model.prepare(_tensor(array))

    def sequence(self, model, array):
        return model.prepare([self._saved(np.rot90(array)), array])[1:]

    def predict_files(self, model, array):
        return model._open(self._saved(array))[0]

    def upright(self, model, array):
        return model.prepare(model.upright(self._saved(array)))

    def canonicalizer(self, model, array):
        return model.prepare(Canonicalizer(model)(_tensor(array)).images)

    def load_folder(self, model, array):
        return model.prepare(self._data(model, array).images)

    def audit(self, model, array):
        return audit._ready(model, self._data(model, array).images)

    def export(self, model, array):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(export, "rotate", lambda images, degrees: images)
            return export.rotated_images(model, self._data(model, array))

    def serve(self, model, array):
        content = fitted(read_upload(_encoded(array)), model.format.channels, model.format.frame)
        return model.prepare(content.unsqueeze(0))

    def _saved(self, array):
        Image.fromarray(array).save(self.file)
        return self.file

    def _data(self, model, array):
        self._saved(array)
        return load_test_split(str(self.folder), model.format).take([0])


TENSORS = ("tensor", "upright", "canonicalizer")
"""Readers that hand a tensor to the model."""
STORED = ("load_folder", "audit", "export")
"""Readers of images that were rounded to bytes when they were stored; a value half-way goes either way."""
READERS = [name for name in vars(Reader) if not name.startswith("_")]


def _encoded(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def _tensor(array):
    channels_first = array if array.ndim == 2 else np.moveaxis(array, -1, 0)[None]
    return torch.from_numpy(channels_first.copy())


@pytest.fixture
def readers(tmp_path):
    reader = Reader(tmp_path)
    return {name: getattr(reader, name) for name in READERS}


def check_alike(actual, expected, model, array, name):
    where = f"{array.shape} {array.dtype} for {model.format}"
    atol = 1 / 255 + 1e-6 if name in STORED else 1e-6
    torch.testing.assert_close(actual, expected, rtol=0, atol=atol, msg=lambda text: f"{where}: {text}")


def check_quarter_turns(name, readers, model, array):
    """prepare(R x) = R prepare(x) for all three quarter turns R."""
    read = readers[name]
    prepared = read(model, array)
    assert prepared.shape == (1, model.format.channels, 32, 32)
    for quarters in (1, 2, 3):
        expected = torch.rot90(prepared, quarters, (-2, -1))
        assert array.shape[0] == 1 or not torch.allclose(expected, prepared, atol=0.01)
        check_alike(read(model, np.rot90(array, quarters)), expected, model, array, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_preparing_commutes_with_quarter_turns(readers, models, name, kind):
    for size in SIZES:
        for model in models:
            check_quarter_turns(name, readers, model, image(kind, size))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", READERS)
def test_every_reader_prepares_an_image_as_a_prediction_does(readers, models, name, kind):
    for size in SIZES:
        for model in models:
            if size == (32, 32) and name in TENSORS:
                continue  # prepared already
            array = image(kind, size)
            check_alike(readers[name](model, array), readers["numpy"](model, array), model, array, name)


def test_only_a_tensor_of_the_networks_shape_counts_as_prepared(models):
    for model in models:
        array = image("colour" if model.format.channels == 3 else "grey", (32, 32))
        given = _tensor(array) if array.ndim == 3 else _tensor(array)[None, None]
        assert torch.equal(model.prepare(given), given.float() / 255)
        assert (model.prepare(array) - model.prepare(given)).abs().max() > 0.1


def floor_margins(images, height, width):
    """The old way: of an odd number of rows, the larger half goes below."""
    top, left = (height - images.shape[-2]) // 2, (width - images.shape[-1]) // 2
    return F.pad(images, (left, width - images.shape[-1] - left, top, height - images.shape[-2] - top))


def resized_with_floor_margins(images, side):
    longest = max(images.shape[-2:])
    padded = floor_margins(as_floats(images), longest, longest).double()
    return F.interpolate(padded, (side, side), mode="bilinear", antialias=True, align_corners=False).float()


@pytest.mark.parametrize("name", READERS)
def test_floor_margins_would_be_noticed(readers, models, name, monkeypatch):
    """Control: in every reader, and only where a difference is odd."""
    monkeypatch.setattr(road, "pad_to", floor_margins)
    monkeypatch.setattr(road, "resized", resized_with_floor_margins)
    for size in ODD:
        with pytest.raises(AssertionError, match="not close"):
            check_quarter_turns(name, readers, models[0], image("grey", size))
    check_quarter_turns(name, readers, models[0], image("grey", (41, 29)))


def test_another_reader_would_be_noticed(models):
    """Control: an image that is resized before it is padded does not agree."""
    array = image("grey", (41, 30))
    resized = np.array(Image.fromarray(array).resize((20, 28), Image.Resampling.BILINEAR))
    with pytest.raises(AssertionError, match="not close"):
        check_alike(models[0].prepare(resized), models[0].prepare(array), models[0], array, "numpy")


def test_an_image_of_the_networks_size_counts_as_prepared(models):
    ready = torch.rand(3, 1, 32, 32)
    assert torch.equal(models[0].prepare(ready), ready)
