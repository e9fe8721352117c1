"""How a network for points is measured during and after training."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from equicaps.data.padding import PaddedClouds
from equicaps.data.shapes import POINTS, Shapes
from equicaps.groups import SO3
from equicaps.losses import true_poses
from equicaps.metrics import (
    PosePairs,
    accuracy,
    balanced_accuracy,
    check_not_empty,
    confusion,
    on_cpu,
    rotation_errors,
)
from equicaps.models.output import CapsOutput


@dataclass(frozen=True)
class AnyRotation:
    """Accuracies and pose error on shapes that are rotated by seeded random rotations.

    Every shape is looked at twice, with other points of its surface and another rotation. The first view counts for the
    accuracies. The pose error is the angle between the predicted and the true rotation from one view to the other, of
    shapes whose class is right in both; it needs no true pose. Clouds that have no other points are left out of it: the
    rotation of one and the same cloud is exact, whatever was learned.
    """

    data: Shapes
    points: int = POINTS
    seed: int = 0
    batch: int = 64
    confusion: bool = False

    @torch.no_grad()
    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Any]:
        """Accuracies in percent, pose errors in degrees."""
        data, answer = self.data.some(limit), on_cpu(network)
        check_not_empty("AnyRotation", data)
        outputs, rotations = [], []
        for view in range(2):
            generator = torch.Generator().manual_seed(2 * self.seed + view)
            rotation = SO3().random(len(data), generator=generator)
            clouds = PaddedClouds.of(data.surfaces.draw(self.points, generator))
            clouds = clouds._replace(points=SO3().act(rotation.unsqueeze(1), clouds.points))
            outputs.append(CapsOutput.cat([answer(*part) for part in clouds.split(self.batch)]))
            rotations.append(rotation)
        found, predictions = accuracy(outputs[0], data.labels), outputs[0].scores.argmax(-1)
        right = (predictions == data.labels) & (outputs[1].scores.argmax(-1) == data.labels)
        right &= ~data.surfaces.whole(self.points)
        figures: dict[str, Any] = {
            "accuracy": found.scores,
            "agreement_accuracy": found.activations,
            "balanced_accuracy": balanced_accuracy(predictions, data.labels),
            "images": len(data),
        }
        if right.any():
            first, second = (true_poses(output, data.labels)[right] for output in outputs)
            errors = rotation_errors(PosePairs(first, second, rotations[0][right], rotations[1][right]))
            figures |= {
                "pose_error_mean": errors.mean().item(),
                "pose_error_median": errors.median().item(),
                "pose_shapes": int(right.sum()),
            }
        if self.confusion:
            figures["confusion"] = confusion(predictions, data.labels, classes=len(data.classes)).tolist()
        return figures
