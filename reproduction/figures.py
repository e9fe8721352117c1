"""Figure 4: what the poses of a trained network look like."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import Dataset
from equicaps.groups import SO2
from equicaps.images import rotate
from equicaps.losses import true_poses
from equicaps.metrics import pose_errors
from equicaps.models import GroupCapsNet
from reproduction import plots
from reproduction.naive import SIZE
from reproduction.session import Record, Session, described
from reproduction.table1a import TESTED_ON

RUN = "rotated-steerable"
ANGLES = tuple(45.0 * step for step in range(8))
LAYER_ANGLES = (0.0, 45.0, 90.0, 135.0)
LAYER_DIGIT = 4
"""The class of the digit whose inner poses are drawn: strokes in several directions, no symmetry."""
CANDIDATES = 400
"""Test digits among which the worst is looked for."""


def figures(session: Session, pictures: Path) -> Record | None:
    """Draws ``output_poses``, ``layer_poses`` and ``reconstructions``, and writes ``figures.json``."""
    record, network = session.record(RUN), session.network(RUN)
    if record is None or network is None:
        return None
    digits = session.digits()
    first = [int((digits.labels == digit).nonzero()[0]) for digit in range(10)]
    pictures.mkdir(parents=True, exist_ok=True)
    drawn: dict[str, Any] = {}
    with torch.no_grad():
        drawn["output_poses"] = _output_poses(network, digits, first, session, pictures)
        drawn["layer_poses"] = _layer_poses(network, digits, first[LAYER_DIGIT], pictures)
        drawn["reconstructions"] = _reconstructions(network, digits, first, pictures)
    return session.write("figures", {**described(record, TESTED_ON["rotated"]), "pictures": drawn})


def turned_outputs(
    network: GroupCapsNet, images: Float[Tensor, "n 1 h w"], labels: Int[Tensor, " n"], angles: tuple[float, ...]
) -> tuple[Float[Tensor, "n angles size size"], Float[Tensor, "n angles 2"], Int[Tensor, "n angles"]]:
    """Every image at every angle, the pose of its true class, and the predicted class."""
    views, poses, classes = [], [], []
    for angle in angles:
        view = rotate(images, torch.full((len(images),), angle), SIZE)
        output = network(view)
        views.append(view.squeeze(1))
        poses.append(true_poses(output, labels))
        classes.append(output.scores.argmax(-1))
    return torch.stack(views, 1), torch.stack(poses, 1), torch.stack(classes, 1)


def errors_along(poses: Float[Tensor, "n angles 2"], angles: tuple[float, ...]) -> Float[Tensor, "n angles"]:
    """Degrees between each pose and the first one turned along."""
    columns = [
        pose_errors(poses[:, 0], poses[:, k], torch.full((len(poses),), angle)) for k, angle in enumerate(angles)
    ]
    return torch.stack(columns, 1)


def _output_poses(network: GroupCapsNet, digits: Dataset, first: list[int], session: Session, pictures: Path) -> Record:
    some = torch.arange(len(digits))[:: max(1, len(digits) // CANDIDATES)]
    mean = []
    for part in session.watcher.each(some.split(100), "output poses"):
        _, poses, _ = turned_outputs(network, digits.images[part], digits.labels[part], ANGLES)
        mean.append(errors_along(poses, ANGLES).mean(1))
    worst = int(some[torch.cat(mean).argmax()])
    chosen = torch.tensor([*first, worst])
    labels = digits.labels[chosen]
    views, poses, classes = turned_outputs(network, digits.images[chosen], labels, ANGLES)
    errors = errors_along(poses, ANGLES)
    plots.output_poses(pictures / "output_poses.png", views, poses, errors, ANGLES)
    return {"digits": chosen.tolist(), "classes": labels.tolist(), "predicted": classes.tolist(),
            "degrees": list(ANGLES), "errors": errors.tolist(), "worst_of": len(some)}  # fmt: skip


def _layer_poses(network: GroupCapsNet, digits: Dataset, index: int, pictures: Path) -> Record:
    image = digits.images[index : index + 1].expand(len(LAYER_ANGLES), -1, -1, -1)
    views = rotate(image, torch.tensor(LAYER_ANGLES), SIZE)
    layers = network.capsules(views)[:2]
    # One capsule for a layer, the same at every angle: the one that answers most to the upright digit.
    strongest = [int(layer.activations[0].sum((-2, -1)).argmax()) for layer in layers]
    fields = [
        (layer.poses[:, capsule], layer.activations[:, capsule])
        for layer, capsule in zip(layers, strongest, strict=True)
    ]
    plots.layer_poses(pictures / "layer_poses.png", views.squeeze(1), fields, LAYER_ANGLES)
    return {"digit": index, "capsules": strongest, "degrees": list(LAYER_ANGLES)}


def _reconstructions(network: GroupCapsNet, digits: Dataset, first: list[int], pictures: Path) -> Record:
    views = rotate(digits.images[first], torch.zeros(len(first)), SIZE)
    output, group = network(views), SO2()
    assert network.decoder is not None
    images = []
    for angle in ANGLES:
        turn = group.exp(torch.deg2rad(torch.tensor([angle])))
        images.append(network.decoder(output._replace(poses=group.compose(turn, output.poses))).squeeze(1))
    plots.reconstructions(pictures / "reconstructions.png", views.squeeze(1), torch.stack(images, 1), ANGLES)
    return {"digits": first, "degrees": list(ANGLES)}
