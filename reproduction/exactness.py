"""Section 6.2, "Equivariance properties and accuracy": trained on upright digits, tested on turned ones.

Also what quarter turns change in the networks that were trained on turned digits.
"""

from dataclasses import replace

import torch

from equicaps.data import Dataset
from equicaps.images import rotate
from equicaps.metrics import exactness as deviations
from equicaps.models import GroupCapsNet
from equicaps.training import AsTheyAre
from reproduction.naive import SIZE
from reproduction.session import Record, Session, described
from reproduction.table1a import TESTED_ON

RUNS = {"whole": "upright-steerable", "plain_cnn": "upright-plain_cnn"}
TURNED = {"whole": "rotated-steerable", "paper": "rotated-paper"}
"""Trained on turned digits."""
QUARTERS = (0, 90, 180, 270)
STEP = 15
"""Degrees between two points of the curve over the angle."""
CURVE_DIGITS = 2000
"""Evenly spaced in the test set."""


def exactness(session: Session) -> Record:
    """Writes ``exactness.json``: for each network the accuracies at quarter turns, at any angle, and over the angle."""
    networks = {name: _measured(session, run) for name, run in RUNS.items()}
    turned = {name: _changes(session, run) for name, run in TURNED.items()}
    return session.write("exactness", {"networks": networks, "trained_turned": turned})


def _measured(session: Session, run: str) -> Record | None:
    record, network = session.record(run), session.network(run)
    if record is None or network is None:
        return None
    digits = session.digits()
    return {
        **described(record, TESTED_ON["upright"]),
        "quarters": _quarters(network, digits, session, run),
        "deviations": _deviations(network, digits, session, run),
        "curve": _curve(network, digits, session, run),
    }


def _changes(session: Session, run: str) -> Record | None:
    record, network = session.record(run), session.network(run)
    if record is None or network is None:
        return None
    changes = _deviations(network, session.digits(), session, run)
    return {**described(record, TESTED_ON["rotated"]), "deviations": changes}


def _quarters(network: GroupCapsNet, digits: Dataset, session: Session, run: str) -> Record:
    """The accuracy at each quarter turn of digits that are otherwise as they are."""
    upright = _turned(digits, 0.0)
    accuracies = {}
    for degrees in session.watcher.each(QUARTERS, f"{run} at quarter turns"):
        turned = replace(upright, images=torch.rot90(upright.images, degrees // 90, (-2, -1)))
        accuracies[str(degrees)] = AsTheyAre(turned)(network)["accuracy"]
    return {"tested_on": "MNIST (test)", "test_images": len(digits), "accuracy": accuracies}


def _deviations(network: GroupCapsNet, digits: Dataset, session: Session, run: str) -> Record:
    """DESIGN.md 7.1: the largest changes under quarter turns, of upright digits and of digits turned before."""
    angles = torch.rand(len(digits), generator=torch.Generator().manual_seed(0)) * 360
    before = {"upright": torch.zeros(len(digits)), "turned": angles}
    found = {}
    for name in session.watcher.each(tuple(before), f"{run}, changes under quarter turns"):
        found[name] = deviations(network, rotate(digits.images, before[name], SIZE))._asdict()
    return found


def _curve(network: GroupCapsNet, digits: Dataset, session: Session, run: str) -> Record:
    some = digits.take(slice(None, None, max(1, len(digits) // CURVE_DIGITS)))
    degrees = list(range(0, 360, STEP))
    accuracies = [
        AsTheyAre(_turned(some, float(angle)))(network)["accuracy"]
        for angle in session.watcher.each(degrees, f"{run} over the angle")
    ]
    return {"degrees": degrees, "accuracy": accuracies, "test_images": len(some)}


def _turned(digits: Dataset, degrees: float) -> Dataset:
    return replace(digits, images=rotate(digits.images, torch.full((len(digits),), degrees), SIZE))
