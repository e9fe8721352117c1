"""Figures: accuracy of both outputs, pose error, exactness under 90 degrees."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import rotate
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.losses import true_poses
from equicaps.models.output import CapsOutput

Network = Callable[[Tensor], CapsOutput]


class Accuracy(NamedTuple):
    """Percent of images whose largest output is the true class."""

    scores: float
    activations: float


class PoseError(NamedTuple):
    """Degrees between predicted and expected poses of the true class (the paper's protocol)."""

    mean: float
    median: float


class Evaluation(NamedTuple):
    """On images turned by any angle."""

    accuracy: Accuracy
    pose_error: PoseError


class Exactness(NamedTuple):
    """The largest changes under quarter turns; poses only where they are defined."""

    images: int
    predictions_changed: int
    scores: float
    activations: float
    poses: float


class LayerExactness(NamedTuple):
    """The largest changes of one layer's capsules under quarter turns, against the grid and the poses turned along."""

    activations: float
    """Relative to the layer's largest activation."""
    poses: float
    """Only where they are defined."""


def accuracy(output: CapsOutput, labels: Int[Tensor, " batch"]) -> Accuracy:
    """Of both outputs."""
    correct = [(values.argmax(-1) == labels).double().mean().item() * 100 for values in output[:2]]
    return Accuracy(*correct)


def pose_errors(
    upright: Float[Tensor, "batch 2"], turned: Float[Tensor, "batch 2"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """Degrees between the turned image's pose and the upright image's pose turned along; 180 where undefined."""
    group = SO2()
    expected = group.compose(group.exp(torch.deg2rad(degrees).unsqueeze(-1)), upright)
    angle = group.log(group.compose(group.inverse(expected), turned)).squeeze(-1)
    defined = (group.presence(upright) > 0.5) & (group.presence(turned) > 0.5)
    return torch.where(defined, torch.rad2deg(angle).abs(), torch.full_like(angle, 180.0))


@torch.no_grad()
def evaluate(
    network: Network,
    images: Float[Tensor, "n channels height width"],
    labels: Int[Tensor, " n"],
    *,
    size: int,
    seed: int = 0,
    batch: int = 250,
) -> Evaluation:
    """Accuracy and pose error on every image turned by a seeded uniform angle."""
    generator = torch.Generator().manual_seed(seed)
    degrees = torch.rand(len(images), generator=generator) * 360
    outputs, errors = [], []
    for x, y, angle in zip(images.split(batch), labels.split(batch), degrees.split(batch), strict=True):
        upright, turned = network(rotate(x, torch.zeros_like(angle), size)), network(rotate(x, angle, size))
        outputs.append(accuracy(turned, y))
        errors.append(pose_errors(true_poses(upright, y), true_poses(turned, y), angle))
    sizes = torch.tensor([len(x) for x in images.split(batch)], dtype=torch.float64)
    mean = (torch.tensor(outputs, dtype=torch.float64) * sizes[:, None]).sum(0) / sizes.sum()
    error = torch.cat(errors)
    return Evaluation(Accuracy(*mean.tolist()), PoseError(error.mean().item(), error.median().item()))


@torch.no_grad()
def class_zeros(
    network: Network,
    images: Float[Tensor, "n channels height width"],
    labels: Int[Tensor, " n"],
    *,
    classes: int,
    batch: int = 250,
) -> list[float]:
    """For each class the mean angle in degrees that the network gives to upright images; 0 without images or poses."""
    group, zeros = SO2(), []
    poses = [true_poses(network(x), y) for x, y in zip(images.split(batch), labels.split(batch), strict=True)]
    everything = torch.cat(poses)
    for label in range(classes):
        found = everything[labels == label]
        mean = group.mean(found, group.presence(found)) if len(found) else everything.new_zeros(2)
        zeros.append(torch.rad2deg(group.log(mean)).item())
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
    changed, worst = 0, torch.zeros(3, dtype=torch.float64)
    for still, turned, quarters in _turned(network, images, batch):
        changed += int((still.scores.argmax(-1) != turned.scores.argmax(-1)).sum())
        angle = torch.tensor([quarters * torch.pi / 2], dtype=images.dtype)
        expected = SO2().compose(SO2().exp(angle), still.poses)
        defined = (SO2().presence(still.poses) > 0.5).unsqueeze(-1)
        deviations = (
            (turned.scores - still.scores).abs().max(),
            (turned.activations - still.activations).abs().max(),
            ((turned.poses - expected) * defined).abs().max(),
        )
        worst = torch.maximum(worst, torch.stack(deviations).double())
    scores, activations, poses = worst.tolist()
    return Exactness(len(images), changed, scores, activations, poses)


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
    worst: list[tuple[float, float, float]] = []
    for x in images.split(batch):
        still = capsules(x)
        worst = worst or [(0.0, 0.0, 0.0)] * len(still)
        for quarters in (1, 2, 3):
            turned = capsules(torch.rot90(x, quarters, (-2, -1)))
            found = map(_layer_changes, turned, (quarter_turns(layer, quarters) for layer in still))
            worst = [(max(a, d), max(b, e), max(c, f)) for (a, b, c), (d, e, f) in zip(worst, found, strict=True)]
    return [LayerExactness(change / (largest or 1.0), poses) for change, largest, poses in worst]


def _layer_changes(actual: Capsules, expected: Capsules) -> tuple[float, float, float]:
    """Of activations and defined poses; in between the largest activation."""
    defined = (SO2().presence(expected.poses) > 0.5).unsqueeze(-1)
    change = (actual.activations - expected.activations).abs().max()
    poses = ((actual.poses - expected.poses) * defined).abs().max()
    return change.item(), expected.activations.abs().max().item(), poses.item()


def _turned(network: Network, images: Tensor, batch: int) -> Iterator[tuple[CapsOutput, CapsOutput, int]]:
    for x in images.split(batch):
        still = network(x)
        for quarters in (1, 2, 3):
            yield still, network(torch.rot90(x, quarters, (-2, -1))), quarters
