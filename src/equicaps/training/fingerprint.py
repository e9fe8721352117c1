"""Which images a training has seen: a resumed one must see the same, or be told that it shall not."""

import hashlib
from collections.abc import Iterator, Mapping

from equicaps.data import Dataset, Shapes
from equicaps.images.stored import StoredImages

_WORDS = {"images": "the images", "order": "the order of the images", "labels": "the classes of the images",
          "angles": "the known angles", "classes": "the names of the classes"}  # fmt: skip


def fingerprint(data: Dataset | Shapes) -> dict[str, str]:
    """Checksums of the images as they were prepared (in any order, and in theirs), labels, angles and class names."""
    each = [_checksum(content) for content in _each(data)]
    angles = b"" if data.angles is None else data.angles.double().cpu().numpy().tobytes()
    return {
        "images": _checksum("".join(sorted(each)).encode()),
        "order": _checksum("".join(each).encode()),
        "labels": _checksum(data.labels.long().cpu().numpy().tobytes()),
        "angles": _checksum(angles),
        "classes": _checksum(repr(data.classes).encode()),
    }


def what_differs(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """In words, what two fingerprints do not have in common; empty if they are the same."""
    found = [name for name in _WORDS if before.get(name) != now.get(name)]
    if "images" in found:
        return _WORDS["images"]  # everything else follows them
    return " and ".join(_WORDS[name] for name in found)


def _each(data: Dataset | Shapes) -> Iterator[bytes]:
    """Each image, or shape, as it is stored."""
    if isinstance(data, Shapes):
        yield from (surface.tobytes() for surface in data.surfaces)
    elif isinstance(data.images, StoredImages):
        yield from (data.images.pixels[place].tobytes() for place in data.images.places.tolist())
    else:
        yield from (image.cpu().numpy().tobytes() for image in data.images)


def _checksum(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()
