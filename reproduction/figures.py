"""Figure 4: the poses of a trained network, and reconstructions from rotated poses."""

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
from reproduction.protocols import SIZE
from reproduction.results import Record, Results

TRAINING = "rotated-steerable"
ANGLES = tuple(45.0 * step for step in range(8))
LAYER_ANGLES = (0.0, 45.0, 90.0, 135.0)
LAYER_DIGIT = 4
"""The class of the digit whose inner poses are drawn: it has strokes in several directions and no symmetry."""
CANDIDATES = 400
"""The number of test digits among which the worst one is searched."""


def figures(results: Results) -> Record | None:
    """Draw Figure 4 from our network, and write ``figures.json``."""
    drawn = draw(results, TRAINING)
    return None if drawn is None else results.write("figures", drawn)


@torch.no_grad()
def draw(results: Results, training: str, prefix: str = "") -> Record | None:
    """Draw ``output_poses``, ``layer_poses`` and ``reconstructions`` of a training; returns what they show."""
    trained = results.trained(training)
    if trained is None:
        return None
    entry, network = trained
    digits = results.digits()
    first = [int((digits.labels == digit).nonzero()[0]) for digit in range(10)]
    drawn = {
        "output_poses": _output_poses(network, digits, first, results, prefix),
        "layer_poses": _layer_poses(network, digits, first[LAYER_DIGIT], results, prefix),
        "reconstructions": _reconstructions(network, digits, first, results, prefix),
    }
    return {**entry, "pictures": drawn}


def rotated_outputs(
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
    """Degrees between each pose and the first one rotated by the same angle as the image."""
    columns = [
        pose_errors(poses[:, 0], poses[:, k], torch.full((len(poses),), angle)) for k, angle in enumerate(angles)
    ]
    return torch.stack(columns, 1)


def _output_poses(network: GroupCapsNet, digits: Dataset, first: list[int], results: Results, prefix: str) -> Record:
    some = torch.arange(len(digits))[:: max(1, len(digits) // CANDIDATES)]
    means = []
    for part in results.track(some.split(100), "output poses"):
        _, poses, _ = rotated_outputs(network, digits.images[part], digits.labels[part], ANGLES)
        means.append(errors_along(poses, ANGLES).mean(1))
    worst = int(some[torch.cat(means).argmax()])
    chosen = torch.tensor([*first, worst])
    labels = digits.labels[chosen]
    views, poses, classes = rotated_outputs(network, digits.images[chosen], labels, ANGLES)
    errors = errors_along(poses, ANGLES)
    plots.output_poses(results.pictures / f"{prefix}output_poses.png", views, poses, errors, ANGLES)
    return {"digits": chosen.tolist(), "classes": labels.tolist(), "predicted": classes.tolist(),
            "degrees": list(ANGLES), "errors": errors.tolist(), "worst_of": len(some)}  # fmt: skip


def _layer_poses(network: GroupCapsNet, digits: Dataset, index: int, results: Results, prefix: str) -> Record:
    image = digits.images[index : index + 1].expand(len(LAYER_ANGLES), -1, -1, -1)
    views = rotate(image, torch.tensor(LAYER_ANGLES), SIZE)
    layers = network.capsules(views)[:2]
    # One capsule for each layer, the same at every angle: the one most active on the upright digit.
    strongest = [int(layer.activations[0].sum((-2, -1)).argmax()) for layer in layers]
    fields = [
        (layer.poses[:, capsule], layer.activations[:, capsule])
        for layer, capsule in zip(layers, strongest, strict=True)
    ]
    plots.layer_poses(results.pictures / f"{prefix}layer_poses.png", views.squeeze(1), fields, LAYER_ANGLES)
    return {"digit": index, "capsules": strongest, "degrees": list(LAYER_ANGLES)}


def _reconstructions(network: GroupCapsNet, digits: Dataset, first: list[int], results: Results, prefix: str) -> Record:
    views = rotate(digits.images[first], torch.zeros(len(first)), SIZE)
    output, group = network(views), SO2()
    assert network.decoder is not None
    images = []
    for angle in ANGLES:
        g = group.exp(torch.deg2rad(torch.tensor([angle])))
        images.append(network.decoder(output._replace(poses=group.compose(g, output.poses))).squeeze(1))
    path = results.pictures / f"{prefix}reconstructions.png"
    plots.reconstructions(path, views.squeeze(1), torch.stack(images, 1), ANGLES)
    return {"digits": first, "degrees": list(ANGLES)}
