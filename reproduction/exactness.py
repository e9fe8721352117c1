"""Section 6.2, "Equivariance properties and accuracy": trained on upright digits, tested on rotated ones.

Also measures what quarter turns change in the networks that were trained on rotated digits.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch

from equicaps.data import Dataset
from equicaps.images import rotate
from equicaps.metrics import exactness as deviations
from equicaps.models import GroupCapsNet
from equicaps.training import AsTheyAre
from reproduction import plots
from reproduction.protocols import SIZE
from reproduction.results import Record, Results

UPRIGHT = {"whole": "upright-steerable", "plain_cnn": "upright-plain_cnn"}
"""Networks trained on upright digits."""
ROTATED = {"whole": "rotated-steerable"}
"""Networks trained on rotated digits."""
QUARTERS = (0, 90, 180, 270)
STEP = 15
"""Degrees between two points of the accuracy curve."""
CURVE_DIGITS = 2000
"""The number of test digits, evenly spaced in the set, behind that curve."""


def exactness(results: Results) -> Record:
    """Write ``exactness.json`` and draw the accuracy over the angle.

    The record has, for each network, the accuracy at quarter turns, at any angle and over the angle, and the largest
    changes under quarter turns.
    """
    networks = {name: measured_at_angles(results, training, accuracies=True) for name, training in UPRIGHT.items()}
    trained_rotated = {
        name: measured_at_angles(results, training, accuracies=False) for name, training in ROTATED.items()
    }
    record = results.write("exactness", {"networks": networks, "trained_turned": trained_rotated})
    plots.accuracy_by_angle(results.pictures / "accuracy_by_angle.png", record)
    return record


def measured_at_angles(results: Results, name: str, *, accuracies: bool) -> Record | None:
    """A training's entry with what quarter turns change and, if wanted, its accuracies over the angle."""
    trained = results.trained(name)
    if trained is None:
        return None
    entry, network = trained
    found = {**entry, "deviations": _deviations(network, results, name)}
    if not accuracies:
        return found
    digits, angles = results.digits(), range(0, 360, STEP)
    some = digits.take(slice(None, None, max(1, len(digits) // CURVE_DIGITS)))
    at_quarters = _accuracies(network, digits, QUARTERS, results, f"{name} at quarter turns")
    at_all = _accuracies(network, some, angles, results, f"{name} at all angles")
    return found | {
        "quarters": {
            "tested_on": "MNIST (test)",
            "test_images": len(digits),
            "accuracy": dict(zip(map(str, QUARTERS), at_quarters, strict=True)),
        },
        "curve": {"degrees": list(angles), "accuracy": at_all, "test_images": len(some)},
    }


def _accuracies(
    network: GroupCapsNet, digits: Dataset, angles: Sequence[int], results: Results, what: str
) -> list[int | float]:
    """The accuracy on the digits rotated by each of the angles; quarter turns only move pixels."""
    found = []
    for angle in results.track(angles, what):
        images = rotate(digits.images[:], torch.full((len(digits),), float(angle)), SIZE)
        found.append(AsTheyAre(replace(digits, images=images))(network)["accuracy"])
    return found


def _deviations(network: GroupCapsNet, results: Results, name: str) -> Record:
    """The largest changes under quarter turns, of upright digits and of digits rotated by random angles before."""
    digits = results.digits()
    angles = torch.rand(len(digits), generator=torch.Generator().manual_seed(0)) * 360
    before = {"upright": torch.zeros(len(digits)), "turned": angles}  # the names in all records so far
    found = {}
    for kind in results.track(list(before), f"{name}, changes under quarter turns"):
        found[kind] = deviations(network, rotate(digits.images[:], before[kind], SIZE))._asdict()
    return found
