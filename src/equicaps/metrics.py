"""Metrics: the accuracy of both outputs, the pose error, and the exactness under quarter turns and mirroring."""

import math
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from equicaps.errors import UnansweredError
from equicaps.functional import Capsules
from equicaps.groups import SO2, SO3
from equicaps.losses import true_poses
from equicaps.models.output import CapsOutput

AGREED = 0.3
"""The length of a class's mean pose above which its upright images count as having a common orientation."""

UNDEFINED = 180.0
"""The error in degrees that an undefined pose counts as."""

Network = Callable[..., CapsOutput]
R = TypeVar("R")


@runtime_checkable
class Batches(Protocol):
    """Images that can be taken some at a time: a tensor, or images in a file."""

    def split(self, size: int, /) -> Iterable[Tensor]:
        """All images, at most ``size`` at a time."""


class Accuracy(NamedTuple):
    """The percentage of images whose largest output is the true class, for each of the two outputs."""

    scores: float
    activations: float


class PoseError(NamedTuple):
    """The error in degrees between predicted and expected poses of the true class (the paper's protocol)."""

    mean: float
    median: float
    undefined: float
    """The percentage of images with an undefined pose, each of which counts as an error of 180 degrees."""


class Exactness(NamedTuple):
    """The largest changes of a network's output, apart from the expected ones of poses, where these are defined."""

    images: int
    predictions_changed: int
    scores: float
    activations: float
    poses: float
    poses_defined: float
    """The percentage of poses that are defined."""


class LayerExactness(NamedTuple):
    """The largest deviations of one layer's capsules from the rotated or mirrored capsules."""

    activations: float
    """The deviation relative to the layer's largest activation."""
    poses: float
    """The deviation where poses are defined."""


def accuracy(output: CapsOutput, labels: Int[Tensor, " batch"]) -> Accuracy:
    """The accuracy of scores and agreements; raises if an output is not finite, instead of counting it as wrong."""
    if not (output.scores.isfinite().all() and output.activations.isfinite().all()):
        raise UnansweredError(
            "the network's outputs must be finite, but some are not: its weights are too large, or its input has NaN."
        )
    correct = [(values.argmax(-1) == labels).double().mean().item() * 100 for values in output[:2]]
    return Accuracy(*correct)


def wilson_interval(right: int | float, total: int, z: float = 1.959964) -> tuple[float, float]:
    r"""Wilson's confidence interval, in percent, of an accuracy of ``right`` correct answers out of ``total``.

    :math:`\frac{1}{1 + z^2/n} \bigl(p + \frac{z^2}{2n} \pm z \sqrt{p(1-p)/n + z^2/4n^2}\bigr)`, by default at 95 %.
    ``right`` need not be a whole number: it may be the mean over several networks tested on the same images.
    """
    if not 0 <= right <= total or total < 1:
        raise ValueError(f"wilson_interval: expected 0 <= right <= total and total >= 1, but got {right} of {total}.")
    p, square = right / total, z * z / total
    middle, half = p + square / 2, z * math.sqrt(p * (1 - p) / total + square / (4 * total))
    return max(0.0, 100 * (middle - half) / (1 + square)), min(100.0, 100 * (middle + half) / (1 + square))


def balanced_accuracy(predictions: Int[Tensor, " n"], labels: Int[Tensor, " n"]) -> float:
    """The mean of the accuracies, in percent, of the classes that occur."""
    right = (predictions == labels).double()
    return torch.stack([right[labels == label].mean() for label in labels.unique()]).mean().item() * 100


def confusion(
    predictions: Int[Tensor, " n"], labels: Int[Tensor, " n"], *, classes: int
) -> Int[Tensor, "classes classes"]:
    """The number of images of each class (rows) with each answer (columns)."""
    return (labels * classes + predictions).bincount(minlength=classes**2).reshape(classes, classes)


class PosePairs(NamedTuple):
    """Two views of each shape: the predicted poses, and the true rotations of the shape as its file has it."""

    first: Float[Tensor, "n 9"]
    second: Float[Tensor, "n 9"]
    before: Float[Tensor, "n 9"]
    """The true rotations of the first views."""
    after: Float[Tensor, "n 9"]
    """Those of the second views."""


def rotation_errors(pairs: PosePairs) -> Float[Tensor, " n"]:
    """The angles in degrees between the predicted and the true rotation from one view of each shape to another."""
    difference = _differences(pairs)
    return _where_defined(pairs, difference, torch.linalg.vector_norm(SO3().log(difference), dim=-1))


def vertical_errors(pairs: PosePairs) -> Float[Tensor, " n"]:
    """The angles in degrees by which that rotation misses the third axis of each shape, whatever it does around it.

    That is the error of a shape that looks the same from all sides, such as a round table.
    """
    difference = _differences(pairs)
    tilted = difference.unflatten(-1, (3, 3))[..., 2]
    angles = torch.atan2(torch.linalg.vector_norm(tilted[..., :2], dim=-1), tilted[..., 2])
    return _where_defined(pairs, difference, angles)


def _differences(pairs: PosePairs) -> Float[Tensor, "n 9"]:
    """What the predicted rotation does too much, in the coordinates of the shape: the identity if it is right."""
    group, (first, second, before, after) = SO3(), pairs
    difference = group.compose(
        group.compose(group.inverse(after), second), group.inverse(group.compose(group.inverse(before), first))
    )
    return group.mean(difference.unsqueeze(-2), torch.ones_like(difference[:, :1]))


def _where_defined(pairs: PosePairs, difference: Float[Tensor, "n 9"], radians: Float[Tensor, " n"]) -> Tensor:
    """The angles in degrees, or 180 where a pose, or the rotation between them, is undefined."""
    entries = (pairs.first, pairs.second, difference)
    defined = torch.stack([SO3().presence(entry) > 0.5 for entry in entries]).all(0)
    return torch.where(defined, torch.rad2deg(radians), UNDEFINED)


def pose_errors(
    upright: Float[Tensor, "batch 2"], turned: Float[Tensor, "batch 2"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, " batch"]:
    """The angle in degrees between the rotated image's pose and the rotated pose of the image; 180 where undefined."""
    group = SO2()
    expected = group.compose(group.exp(torch.deg2rad(degrees).unsqueeze(-1)), upright)
    angle = group.log(group.compose(group.inverse(expected), turned)).squeeze(-1)
    defined = (group.presence(upright) > 0.5) & (group.presence(turned) > 0.5)
    return torch.where(defined, torch.rad2deg(angle).abs(), torch.full_like(angle, UNDEFINED))


@torch.no_grad()
def class_zeros(
    network: Network,
    images: Batches,
    labels: Int[Tensor, " n"],
    *,
    classes: int,
    batch: int = 250,
    angles: Float[Tensor, " n"] | None = None,
) -> list[float]:
    """The mean angle in degrees that the network gives to the upright images of each class; 0 where they disagree.

    Images count as upright, except those of classes with known angles: of these classes, only images with a known angle
    count, as if they were rotated back by it.

    Args:
        network: maps images to an output.
        images: the images.
        labels: their true classes.
        classes: the number of classes.
        batch: how many images to compute at once.
        angles: the known angles in degrees, NaN where unknown; None if all are.
    """
    group, zeros = SO2(), []
    poses = [true_poses(network(x), y) for x, y in zip(images.split(batch), labels.split(batch), strict=True)]
    everything = torch.cat(poses)
    known = torch.zeros_like(labels, dtype=torch.bool)
    if angles is not None:
        known = ~angles.isnan()
        everything = group.compose(group.exp(-torch.deg2rad(angles.nan_to_num()).unsqueeze(-1)), everything)
    for label in range(classes):
        mine = labels == label
        found = everything[mine & known if known[mine].any() else mine]
        resultant = found.mean(0) if len(found) else everything.new_zeros(2)
        agreed = resultant.norm() > AGREED
        zeros.append(torch.rad2deg(group.log(resultant)).item() if agreed else 0.0)
    return zeros


def quarter_turns(capsules: Capsules, quarters: int, *, mirrored: bool = False) -> Capsules:
    """Rotate capsules on a grid by quarter turns, both positions and poses; with ``mirrored``, mirror them first."""
    poses, activations = (move_grid(maps, quarters, mirrored=mirrored) for maps in capsules)
    return Capsules(_move_poses(poses, quarters, mirrored), activations)


def move_grid(
    maps: Shaped[Tensor, "batch channels height width *d"], quarters: int, *, mirrored: bool
) -> Shaped[Tensor, "batch channels h w *d"]:
    """Rotate maps by quarter turns; with ``mirrored``, exchange left and right first."""
    return torch.rot90(maps.flip(3) if mirrored else maps, quarters, (2, 3))


def _move_poses(poses: Float[Tensor, "*batch 2"], quarters: int, mirrored: bool) -> Float[Tensor, "*batch 2"]:
    """The poses of a moved image: mirroring takes the direction (x, y) to (-x, y)."""
    if mirrored:
        poses = poses * poses.new_tensor([-1.0, 1.0])
    return SO2().compose(SO2().exp(poses.new_tensor([quarters * torch.pi / 2])), poses)


@torch.no_grad()
def exactness(
    network: Network, images: Float[Tensor, "n channels height width"], *, batch: int = 250, mirrored: bool = False
) -> Exactness:
    """Measure how much a network's output changes when images are rotated by 90, 180 and 270 degrees.

    With ``mirrored``, they are mirrored first, and also compared without a rotation.
    """
    check_not_empty("exactness", images)
    changed, defined_poses, worst = 0, [], torch.zeros(3, dtype=torch.float64)
    for still, turned, quarters in _moved(network, images, batch, mirrored):
        changed += int((still.scores.argmax(-1) != turned.scores.argmax(-1)).sum())
        expected = _move_poses(still.poses, quarters, mirrored)
        defined = (SO2().presence(still.poses) > 0.5).unsqueeze(-1)
        deviations = (
            (turned.scores - still.scores).abs().max(),
            (turned.activations - still.activations).abs().max(),
            ((turned.poses - expected) * defined).abs().max(),
        )
        worst = torch.maximum(worst, torch.stack(deviations).double().cpu())
        defined_poses.append(defined.double().mean((1, 2)))
    scores, activations, poses = worst.tolist()
    share = 100 * torch.cat(defined_poses).mean().item()
    return Exactness(len(images), changed, scores, activations, poses, share)


@torch.no_grad()
def layer_exactness(
    capsules: Callable[[Tensor], list[Capsules]], images: Float[Tensor, "n channels height width"], *,
    batch: int = 250, mirrored: bool = False,
) -> list[LayerExactness]:  # fmt: skip
    """Measure how far every layer is from equivariance when images are rotated by 90, 180 and 270 degrees.

    Args:
        capsules: maps images to the capsules after every layer, such as ``network.capsules``.
        images: the images to rotate.
        batch: how many images to compute at once.
        mirrored: mirror the images first, and also compare them without a rotation.
    """
    check_not_empty("layer_exactness", images)
    found = []
    for still, turned, quarters in _moved(capsules, images, batch, mirrored):
        if not still:
            return []
        expected = (quarter_turns(layer, quarters, mirrored=mirrored) for layer in still)
        found.append(torch.stack(list(map(_layer_changes, turned, expected))))
    worst = torch.stack(found).amax(0)  # amax keeps NaN, which must not pass for 0
    return [LayerExactness(change / (largest or 1.0), poses) for change, largest, poses in worst.tolist()]


def on_cpu(network: nn.Module) -> Network:
    """Wrap a network on any device and of any dtype so that it takes its input and returns outputs on the CPU."""
    parameter = next(network.parameters())

    def answer(*given: Tensor) -> CapsOutput:
        output: CapsOutput = network(*(entry.to(parameter.device, parameter.dtype) for entry in given))
        return output.map(lambda value: value.to("cpu", given[0].dtype))

    return answer


def check_not_empty(where: str, images: Sized) -> None:
    """Raise if there are no images to measure on."""
    if not len(images):
        raise ValueError(f"{where}: there are no images to measure on; pass at least one.")


def _layer_changes(actual: Capsules, expected: Capsules) -> Float[Tensor, "3"]:
    """The largest change of activations, the largest activation, and the largest change of defined poses."""
    defined = (SO2().presence(expected.poses) > 0.5).unsqueeze(-1)
    change = (actual.activations - expected.activations).abs().max()
    poses = ((actual.poses - expected.poses) * defined).abs().max()
    return torch.stack((change, expected.activations.abs().max(), poses)).double()


def _moved(function: Callable[[Tensor], R], images: Tensor, batch: int, mirrored: bool) -> Iterator[tuple[R, R, int]]:
    """What a function makes of the images and of the moved images, for each number of quarter turns that moves them."""
    for x in images.split(batch):
        still = function(x)
        for quarters in range(0 if mirrored else 1, 4):
            yield still, function(move_grid(x, quarters, mirrored=mirrored)), quarters
