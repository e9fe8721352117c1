"""Figures: accuracy of both outputs, pose error, exactness under 90 degrees."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.losses import true_poses
from equicaps.models.output import CapsOutput

AGREED = 0.3
"""Length of the mean pose of a class from which on its images count as upright alike."""

UNDEFINED = 180.0
"""Degrees: the error of an undefined pose."""

Network = Callable[[Tensor], CapsOutput]


class Accuracy(NamedTuple):
    """Percent of images whose largest output is the true class."""

    scores: float
    activations: float


class PoseError(NamedTuple):
    """Degrees between predicted and expected poses of the true class (the paper's protocol)."""

    mean: float
    median: float
    undefined: float
    """Percent of the images with an undefined pose, which count as 180 degrees."""


class Exactness(NamedTuple):
    """The largest changes under quarter turns; poses only where they are defined."""

    images: int
    predictions_changed: int
    scores: float
    activations: float
    poses: float
    poses_defined: float
    """Percent of all poses."""


class LayerExactness(NamedTuple):
    """The largest changes of one layer's capsules under quarter turns, against the grid and the poses turned along."""

    activations: float
    """Relative to the layer's largest activation."""
    poses: float
    """Only where they are defined."""


def accuracy(output: CapsOutput, labels: Int[Tensor, " batch"]) -> Accuracy:
    """Of both outputs; NaN is nobody's answer and raises."""
    if not (output.scores.isfinite().all() and output.activations.isfinite().all()):
        raise ValueError("accuracy: the network's answers are not finite: its weights or its input hold NaN.")
    correct = [(values.argmax(-1) == labels).double().mean().item() * 100 for values in output[:2]]
    return Accuracy(*correct)


def wilson_interval(right: int | float, total: int, z: float = 1.959964) -> tuple[float, float]:
    r"""Wilson's interval of a share, in percent: where the true share lies if ``right`` of ``total`` were right.

    :math:`\frac{1}{1 + z^2/n} \bigl(p + \frac{z^2}{2n} \pm z \sqrt{p(1-p)/n + z^2/4n^2}\bigr)`, by default at 95 %.
    ``right`` need not be whole: the mean over several networks tested on the same ``total`` images.
    """
    if not 0 <= right <= total or total < 1:
        raise ValueError(f"wilson_interval: expected 0 <= right <= total and total >= 1, but got {right} of {total}.")
    p, square = right / total, z * z / total
    middle, half = p + square / 2, z * math.sqrt(p * (1 - p) / total + square / (4 * total))
    return max(0.0, 100 * (middle - half) / (1 + square)), min(100.0, 100 * (middle + half) / (1 + square))


def balanced_accuracy(predictions: Int[Tensor, " n"], labels: Int[Tensor, " n"]) -> float:
    """The mean over the classes that occur of the percentage of their images that are right."""
    right = (predictions == labels).double()
    return torch.stack([right[labels == label].mean() for label in labels.unique()]).mean().item() * 100


def pose_errors(
    upright: Float[Tensor, "batch 2"], turned: Float[Tensor, "batch 2"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """Degrees between the turned image's pose and the upright image's pose turned along; 180 where undefined."""
    group = SO2()
    expected = group.compose(group.exp(torch.deg2rad(degrees).unsqueeze(-1)), upright)
    angle = group.log(group.compose(group.inverse(expected), turned)).squeeze(-1)
    defined = (group.presence(upright) > 0.5) & (group.presence(turned) > 0.5)
    return torch.where(defined, torch.rad2deg(angle).abs(), torch.full_like(angle, UNDEFINED))


@torch.no_grad()
def class_zeros(
    network: Network,
    images: Float[Tensor, "n channels height width"],
    labels: Int[Tensor, " n"],
    *,
    classes: int,
    batch: int = 250,
) -> list[float]:
    """For each class the mean angle in degrees that the network gives to upright images; 0 where they do not agree."""
    group, zeros = SO2(), []
    poses = [true_poses(network(x), y) for x, y in zip(images.split(batch), labels.split(batch), strict=True)]
    everything = torch.cat(poses)
    for label in range(classes):
        found = everything[labels == label]
        resultant = found.mean(0) if len(found) else everything.new_zeros(2)
        known = resultant.norm() > AGREED
        zeros.append(torch.rad2deg(group.log(resultant)).item() if known else 0.0)
    return zeros


def quarter_turns(capsules: Capsules, quarters: int) -> Capsules:
    """Capsules on a grid turned as a whole: their places and their poses."""
    poses, activations = capsules
    angle = torch.tensor([quarters * torch.pi / 2], dtype=poses.dtype, device=poses.device)
    moved = torch.rot90(poses, quarters, (2, 3))
    return Capsules(SO2().compose(SO2().exp(angle), moved), torch.rot90(activations, quarters, (2, 3)))


@torch.no_grad()
def exactness(network: Network, images: Float[Tensor, "n channels height width"], *, batch: int = 250) -> Exactness:
    """DESIGN.md 7.1: what changes when images are turned by 90, 180 and 270 degrees."""
    check_not_empty("exactness", images)
    changed, defined_poses, worst = 0, [], torch.zeros(3, dtype=torch.float64)
    for still, turned, quarters in _turned(network, images, batch):
        changed += int((still.scores.argmax(-1) != turned.scores.argmax(-1)).sum())
        angle = still.poses.new_tensor([quarters * torch.pi / 2])
        expected = SO2().compose(SO2().exp(angle), still.poses)
        defined = (SO2().presence(still.poses) > 0.5).unsqueeze(-1)
        deviations = (
            (turned.scores - still.scores).abs().max(),
            (turned.activations - still.activations).abs().max(),
            ((turned.poses - expected) * defined).abs().max(),
        )
        worst = torch.maximum(worst, torch.stack(deviations).double().cpu())
        defined_poses.append(defined.double().mean().item() * len(defined))
    scores, activations, poses = worst.tolist()
    share = 100 * sum(defined_poses) / (3 * len(images))
    return Exactness(len(images), changed, scores, activations, poses, share)


@torch.no_grad()
def layer_exactness(
    capsules: Callable[[Tensor], list[Capsules]], images: Float[Tensor, "n channels height width"], *, batch: int = 250
) -> list[LayerExactness]:
    """What changes in every layer when images are turned by 90, 180 and 270 degrees.

    Args:
        capsules: from images to the capsules after every layer, such as ``network.capsules``.
        images: to turn.
        batch: how many at once.
    """
    check_not_empty("layer_exactness", images)
    found = []
    for x in images.split(batch):
        still = capsules(x)
        if not still:
            return []
        for quarters in (1, 2, 3):
            turned = capsules(torch.rot90(x, quarters, (-2, -1)))
            expected = (quarter_turns(layer, quarters) for layer in still)
            found.append(torch.stack(list(map(_layer_changes, turned, expected))))
    worst = torch.stack(found).amax(0)  # NaN wins: it must not pass for 0
    return [LayerExactness(change / (largest or 1.0), poses) for change, largest, poses in worst.tolist()]


def on_cpu(network: nn.Module) -> Network:
    """The network on its own device, for images and answers on the CPU."""
    parameter = next(network.parameters())

    def answer(images: Tensor) -> CapsOutput:
        output: CapsOutput = network(images.to(parameter.device, parameter.dtype))
        return output.map(lambda value: value.to("cpu", images.dtype))

    return answer


def check_not_empty(where: str, images: Tensor) -> None:
    """Raise if there is nothing to measure on."""
    if not len(images):
        raise ValueError(f"{where}: there are no images to measure on.")


def _layer_changes(actual: Capsules, expected: Capsules) -> Float[Tensor, "3"]:
    """Of activations and defined poses; in between the largest activation."""
    defined = (SO2().presence(expected.poses) > 0.5).unsqueeze(-1)
    change = (actual.activations - expected.activations).abs().max()
    poses = ((actual.poses - expected.poses) * defined).abs().max()
    return torch.stack((change, expected.activations.abs().max(), poses)).double()


def _turned(network: Network, images: Tensor, batch: int) -> Iterator[tuple[CapsOutput, CapsOutput, int]]:
    for x in images.split(batch):
        still = network(x)
        for quarters in (1, 2, 3):
            yield still, network(torch.rot90(x, quarters, (-2, -1))), quarters
