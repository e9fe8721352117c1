"""Known angles: lists that say how images are rotated from the upright position of their class."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.csv_rows import read_rows
from equicaps.errors import UsageError

ANGLE = "angle"
"""The column of the angles."""


class KnownAngle(NamedTuple):
    """The true angle of an image, and the row that says so."""

    degrees: float
    """Counter-clockwise, from 0 to below 360."""
    where: str


Angles = dict[Path, KnownAngle]
"""The known angles of files, by their resolved paths."""


def read_angles(path: Path) -> Angles:
    """Read the columns ``file`` and ``angle`` of a CSV file; an empty angle is unknown.

    Files are relative to the folder of the list, or absolute. Angles are degrees, counter-clockwise, and any finite
    number is taken modulo 360.

    Raises:
        UsageError: something is wrong with the list; the message names the row.
    """
    found: Angles = {}
    for number, row in enumerate(read_rows(path, ("file", ANGLE))[0], 2):
        where, text = f"{path}, row {number}", (row[ANGLE] or "").strip()
        if not row["file"]:
            raise UsageError(f"{where}: every row needs a file.")
        image = path.parent / row["file"]
        if not image.is_file():
            raise UsageError(f"{where}: {image} is not a file; paths are relative to the folder of the list.")
        if text:
            now = KnownAngle(_degrees(text, f"{where}: the angle of {row['file']}"), where)
            _check_equal(row["file"], now, found.setdefault(image.resolve(), now))
    return found


def merge_angles(lists: Iterable[Angles]) -> Angles:
    """All angles of several lists, which must not contradict each other."""
    merged: Angles = {}
    for angles in lists:
        for file, now in angles.items():
            _check_equal(str(file), now, merged.setdefault(file, now))
    return merged


def angles_of_splits(
    angles: Angles, splits: Mapping[str, Sequence[Path]], copies: Mapping[Path, Path]
) -> tuple[dict[str, Float[Tensor, " _"] | None], list[str]]:
    """The angles of each split's images in degrees, NaN where unknown, or None if all are; and remarks.

    Args:
        angles: the known angles, also of files that are no images of these splits.
        splits: the files of each.
        copies: files that were left out because an image, named here, has the same bytes and therefore the same angle.
    """
    if not angles:
        return dict.fromkeys(splits), []
    known = {image.resolve(): angles.get(image.resolve()) for images in splits.values() for image in images}
    for copy, image in copies.items():
        if now := angles.get(copy.resolve()):
            before = known[image.resolve()] or now
            _check_equal(f"{copy}, a copy of {image},", now, before)
            known[image.resolve()] = before
    others = sorted(angles.keys() - known.keys() - {copy.resolve() for copy in copies})
    if len(others) == len(angles):
        raise UsageError(
            f"{angles[others[0]].where}: {others[0]} is not one of the images, and neither is any other file of the "
            "list that has an angle."
        )
    count = sum(angle is not None for angle in known.values())
    remarks = [f"angles known for {'all' if count == len(known) else count} of them"]
    if others:
        remarks.append(f"{len(others)} angles ignored of files that are not among them, such as {others[0]}")
    return {name: _tensor([known[image.resolve()] for image in images]) for name, images in splits.items()}, remarks


def _tensor(known: Sequence[KnownAngle | None]) -> Float[Tensor, " _"] | None:
    degrees = torch.tensor([math.nan if angle is None else angle.degrees for angle in known])
    return None if degrees.isnan().all() else degrees


def _degrees(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(
            f"{what} must be a finite number of degrees, counter-clockwise, but is {text!r}; leave it empty if it is "
            "unknown."
        )
    return value % 360 % 360  # a tiny negative number modulo 360 rounds to 360


def _check_equal(file: str, now: KnownAngle, before: KnownAngle) -> None:
    if now.degrees != before.degrees:
        raise UsageError(
            f"{now.where}: {file} has the angle {now.degrees:g}, but {before.degrees:g} in {before.where}; keep one."
        )
