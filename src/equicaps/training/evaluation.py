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
from equicaps.losses import true_poses
from equicaps.metrics import (
    UNDEFINED,
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
from equicaps.training.zeros import zeros_of

Evaluation = Callable[[nn.Module, int | None], Mapping[str, Any]]
"""Maps a network in eval mode and a number of images (at most, spread over the set; None for all) to named figures.

All are numbers, except the table of counts under the name ``confusion``, if there is one.
"""


UPRIGHT_IMAGES = 500
"""The number of training images that count as upright, where the last evaluation needs the zeros of classes."""


class AnyAngleFigures(NamedTuple):
    """Figures measured on images rotated by any angle."""

    accuracy: Accuracy
    pose_error: PoseError
    balanced_accuracy: float
    """The mean of the accuracies of all classes, by the scores."""
    predictions: Int[Tensor, " n"]
    """The positions of the predicted classes, by the scores."""
    angle_error: PoseError | None = None
    """The error of the angles themselves, where true ones are known."""


@dataclass(frozen=True)
class AnyAngle:
    """The paper's protocol: accuracies and pose error on images rotated by seeded uniform angles.

    The pose error needs no true angles: it compares the poses of an image and of the rotated image. If ``data`` has
    known angles and ``zeros_from`` is given, the angles of the true classes, from the zeros that the network has on
    those training images, are compared with the true ones, too.

    With ``confusion``, also a table of how many images of each class (rows) got each answer (columns).
    """

    data: Dataset
    size: int = 32
    seed: int = 0
    batch: int = 250
    interpolation: Interpolation = "bilinear"
    confusion: bool = False
    zeros_from: Dataset | None = None

    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Any]:
        """Accuracies in percent, pose errors in degrees."""
        data = self.data.some(limit)
        result = evaluate(
            on_cpu(network), data.images, data.labels, size=self.size, seed=self.seed, batch=self.batch,
            interpolation=self.interpolation, truth=self._truth(network, data, limit),
        )  # fmt: skip
        error = result.angle_error
        figures: dict[str, Any] = {
            "accuracy": result.accuracy.scores,
            "agreement_accuracy": result.accuracy.activations,
            "balanced_accuracy": result.balanced_accuracy,
            "pose_error_mean": result.pose_error.mean,
            "pose_error_median": result.pose_error.median,
            "pose_undefined": result.pose_error.undefined,
            "images": len(data),
            **({} if error is None else {"angle_error_mean": error.mean, "angle_error_median": error.median}),
        }
        if self.confusion:
            figures["confusion"] = confusion(result.predictions, data.labels, classes=len(data.classes)).tolist()
        return figures

    def _truth(self, network: nn.Module, data: Dataset, limit: int | None) -> Float[Tensor, " n"] | None:
        """The angle that the network should give to each image; None if no true angle is known."""
        if data.angles is None or self.zeros_from is None or not data.known_angles.any():
            return None
        zeros = zeros_of(network, self.zeros_from, size=self.size, limit=limit or UPRIGHT_IMAGES)
        return data.angles + data.angles.new_tensor(zeros)[data.labels]


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
) -> AnyAngleFigures:
    """Accuracy and pose error on images rotated by seeded uniform angles.

    With ``truth``, the degrees of the poses that the network should give to the images before they are rotated (NaN
    where unknown), also the errors from these.
    """
    check_not_empty("evaluate", images)
    generator = torch.Generator().manual_seed(seed)
    degrees = (torch.rand(len(images), generator=generator) * 360).to(labels.device)
    outputs, errors, predictions, poses = [], [], [], []
    for x, y, angle in zip(images.split(batch), labels.split(batch), degrees.split(batch), strict=True):
        upright, rotated = (
            network(rotate(x, torch.zeros_like(angle), size)),
            network(rotate(x, angle, size, interpolation)),
        )
        outputs.append(accuracy(rotated, y))
        predictions.append(rotated.scores.argmax(-1))
        poses.append(true_poses(rotated, y))
        errors.append(pose_errors(true_poses(upright, y), true_poses(rotated, y), angle))
    sizes = torch.tensor([len(y) for y in labels.split(batch)], dtype=torch.float64)
    mean = (torch.tensor(outputs, dtype=torch.float64) * sizes[:, None]).sum(0) / sizes.sum()
    answers = torch.cat(predictions)
    found = Accuracy(*mean.tolist()), _summary(torch.cat(errors)), balanced_accuracy(answers, labels), answers
    if truth is None:
        return AnyAngleFigures(*found)
    reached = torch.cat(poses)
    zero = SO2().identity(len(truth), dtype=reached.dtype, device=reached.device)
    from_truth = pose_errors(zero, reached, degrees + truth)[~truth.isnan()]
    return AnyAngleFigures(*found, _summary(from_truth))


def _summary(errors: Float[Tensor, " n"]) -> PoseError:
    undefined = (errors == UNDEFINED).double().mean().item() * 100
    return PoseError(errors.mean().item(), errors.median().item(), undefined)
