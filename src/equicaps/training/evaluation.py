"""How a network is measured during and after training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equicaps.data import Dataset
from equicaps.groups import SO2
from equicaps.images import rotate
from equicaps.images.stored import StoredImages
from equicaps.images.warp import Interpolation
from equicaps.inference.symmetry import pose_error, with_moments
from equicaps.losses import true_poses
from equicaps.metrics import (
    Accuracy,
    Network,
    PoseError,
    accuracy,
    balanced_accuracy,
    check_not_empty,
    confusion,
    on_cpu,
    pose_errors,
)
from equicaps.models.output import CapsOutput
from equicaps.training.config import Number
from equicaps.training.zeros import symmetries_of, zeros_of

Evaluation = Callable[[nn.Module, int | None], Mapping[str, Any]]
"""Maps a network in eval mode and a number of images (at most, spread over the set; None for all) to named figures.

All are numbers, except the table of counts under the name ``confusion``, if there is one.
"""


UPRIGHT_IMAGES = 500
"""The number of training images that count as upright, where the last evaluation needs the zeros of classes."""


class AnyAngleFigures(NamedTuple):
    """Figures measured on images rotated by any angle."""

    accuracy: Accuracy
    pose_error: PoseError | None
    """None if all images are of round classes."""
    balanced_accuracy: float
    """The mean of the accuracies of all classes, by the scores."""
    predictions: Int[Tensor, " n"]
    """The positions of the predicted classes, by the scores."""
    angle_error: PoseError | None = None
    """The error of the angles themselves, where true ones are known."""
    modulo_period: int = 0
    """The number of images whose errors are those modulo the period of their class, because it looks the same then."""
    round: int = 0
    """The number of images of round classes, which have no errors."""


@dataclass(frozen=True)
class AnyAngle:
    """The paper's protocol: accuracies and pose error on images rotated by seeded uniform angles.

    The pose error needs no true angles: it compares the poses of an image and of the rotated image. If ``data`` has
    known angles and ``zeros_from`` is given, the angles of the true classes, from the zeros that the network has on
    those training images, are compared with the true ones, too.

    The protocol knows no classes that look the same after a part of a turn: their poses are undefined and count as
    errors of 180 degrees. With ``symmetries_from``, such classes are looked for in those training images: the errors of
    their angles are then measured modulo the period, images of a round class do not count, and the figures say how many
    images these are.

    With ``confusion``, also a table of how many images of each class (rows) got each answer (columns).
    """

    data: Dataset
    size: int = 32
    seed: int = 0
    batch: int = 250
    interpolation: Interpolation = "bilinear"
    confusion: bool = False
    zeros_from: Dataset | None = None
    symmetries_from: Dataset | None = None

    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Any]:
        """Accuracies in percent, pose errors in degrees."""
        data = self.data.some(limit)
        symmetries = None if self.symmetries_from is None else symmetries_of(network, self.symmetries_from)
        orders = None if symmetries is None else symmetries.orders
        result = evaluate(
            with_moments(network, symmetries), data.images, data.labels, size=self.size, seed=self.seed,
            batch=self.batch, interpolation=self.interpolation, truth=self._truth(network, data, limit, orders),
            orders=orders,
        )  # fmt: skip
        pose, angle = result.pose_error, result.angle_error
        undefined = {} if pose is None else {"pose_undefined": pose.undefined}
        symmetric = {"images_modulo_period": result.modulo_period, "images_of_round_classes": result.round}
        figures: dict[str, Any] = {
            "accuracy": result.accuracy.scores,
            "agreement_accuracy": result.accuracy.activations,
            "balanced_accuracy": result.balanced_accuracy,
            **_mean_and_median("pose_error", pose),
            **undefined,
            "images": len(data),
            **_mean_and_median("angle_error", angle),
            **({} if symmetries is None else symmetric),
        }
        if self.confusion:
            figures["confusion"] = confusion(result.predictions, data.labels, classes=len(data.classes)).tolist()
        return figures

    def _truth(
        self, network: nn.Module, data: Dataset, limit: int | None, orders: Float[Tensor, " classes"] | None
    ) -> Float[Tensor, " n"] | None:
        """The angle that the network should give to each image; None if no true angle is known."""
        if data.angles is None or self.zeros_from is None or not data.known_angles.any():
            return None
        found = zeros_of(network, self.zeros_from, size=self.size, limit=limit or UPRIGHT_IMAGES)
        zeros = data.angles.new_tensor(found)
        if orders is not None:
            zeros = torch.where(orders == 1, zeros, 0.0)  # upright images of symmetric classes read 0
        return data.angles + zeros[data.labels]


@dataclass(frozen=True)
class LookOnce:
    """Some validation images while the training goes on, and at its end all test images, which nothing depends on."""

    validation: Evaluation
    test: Evaluation

    def __call__(self, network: nn.Module, limit: int | None = None) -> Mapping[str, Any]:
        """The figures on at most ``limit`` validation images; without a limit those on all test images.

        The latter also have the accuracy on all validation images.
        """
        if limit is not None:
            return self.validation(network, limit)
        watched = self.validation(network, None)
        names = {"validation_accuracy": "accuracy", "validation_images": "images"}
        return {**self.test(network, None), **{name: watched[figure] for name, figure in names.items()}}


@dataclass(frozen=True)
class AsTheyAre:
    """Accuracies on a fixed test set (upright digits, MNIST-rot, affNIST, ...), whose images are not rotated."""

    data: Dataset
    batch: int = 250

    @torch.no_grad()
    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Number]:
        """Accuracies in percent."""
        data = self.data.some(limit)
        answer = on_cpu(network)
        found = accuracy(CapsOutput.cat([answer(part) for part in data.images.split(self.batch)]), data.labels)
        return {"accuracy": found.scores, "agreement_accuracy": found.activations, "images": len(data)}


@torch.no_grad()
def evaluate(
    network: Network,
    images: Float[Tensor, "n channels height width"] | StoredImages,
    labels: Int[Tensor, " n"],
    *,
    size: int,
    seed: int = 0,
    batch: int = 250,
    interpolation: Interpolation = "bilinear",
    truth: Float[Tensor, " n"] | None = None,
    orders: Float[Tensor, " classes"] | None = None,
) -> AnyAngleFigures:
    """Accuracy and pose error on images rotated by seeded uniform angles.

    With ``truth``, the degrees of the poses that the network should give to the images before they are rotated (NaN
    where unknown), also the errors from these. With ``orders``, poses of each class rotate so many times as fast as the
    image (:func:`.with_moments`), and those of classes of order 0 do not count.
    """
    check_not_empty("evaluate", images)
    generator = torch.Generator().manual_seed(seed)
    degrees = (torch.rand(len(images), generator=generator) * 360).to(labels.device)
    order = torch.ones_like(degrees) if orders is None else orders.to(degrees)[labels]
    outputs, errors, predictions, poses = [], [], [], []
    turns = (degrees * order).split(batch)
    parts = zip(images.split(batch), labels.split(batch), degrees.split(batch), turns, strict=True)
    for x, y, angle, turn in parts:
        upright, rotated = (
            network(rotate(x, torch.zeros_like(angle), size)),
            network(rotate(x, angle, size, interpolation)),
        )
        outputs.append(accuracy(rotated, y))
        predictions.append(rotated.scores.argmax(-1))
        poses.append(true_poses(rotated, y))
        errors.append(pose_errors(true_poses(upright, y), true_poses(rotated, y), turn))
    sizes = torch.tensor([len(y) for y in labels.split(batch)], dtype=torch.float64)
    mean = (torch.tensor(outputs, dtype=torch.float64) * sizes[:, None]).sum(0) / sizes.sum()
    answers = torch.cat(predictions)
    error = pose_error(torch.cat(errors), order)
    found = AnyAngleFigures(
        Accuracy(*mean.tolist()), error, balanced_accuracy(answers, labels), answers,
        modulo_period=int((order > 1).sum()), round=int((order == 0).sum()),
    )  # fmt: skip
    if truth is None:
        return found
    reached = torch.cat(poses)
    zero = SO2().identity(len(truth), dtype=reached.dtype, device=reached.device)
    from_truth, known = pose_errors(zero, reached, (degrees + truth) * order), ~truth.isnan()
    return found._replace(angle_error=pose_error(from_truth[known], order[known]))


def _mean_and_median(name: str, error: PoseError | None) -> dict[str, float]:
    return {} if error is None else {f"{name}_mean": error.mean, f"{name}_median": error.median}
