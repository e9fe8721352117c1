"""What a model file says about a network beside its weights, measured when its training ends."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from equicaps.data import Dataset, Shapes
from equicaps.data.padding import PaddedClouds
from equicaps.groups import SO3
from equicaps.inference.angle_error import measure_errors
from equicaps.inference.card import Card
from equicaps.inference.model import PoseModel
from equicaps.inference.point_card import PointCard
from equicaps.inference.point_model import PointModel
from equicaps.inference.rotation_error import measure_rotation_errors
from equicaps.losses import true_poses
from equicaps.metrics import on_cpu
from equicaps.models import GroupCapsNet, PointCapsNet
from equicaps.models.output import CapsOutput
from equicaps.training.config import TrainConfig
from equicaps.training.zeros import symmetries_of, zeros_of

BATCH = 64
"""How many shapes pass through the network at once."""


def about_images(
    network: nn.Module, config: TrainConfig, data: Dataset, validation: Dataset | None, content: Mapping[str, Any]
) -> dict[str, Any]:
    """The zeros of all classes, their symmetries, the error of angles, and what the images were like.

    Args:
        network: a trained :class:`GroupCapsNet` in eval mode.
        config: the settings of the training.
        data: the training set.
        validation: images that are not in ``data``, on which the error of angles is measured: of each class from the
            truth, if enough of its images have known angles, and otherwise by rotating them.
        content: the rest of the model file.
    """
    assert isinstance(network, GroupCapsNet)
    found = {
        "data": data.name,
        "zeros": zeros_of(network, data, size=config.image_model.image_size, limit=config.intervals.evaluation_images),
        "frame": max(data.images.shape[-2:]),  # the side of the training images, once they are square
        "background": data.background,
    }
    symmetries = symmetries_of(network, data)
    found |= {} if symmetries is None else {"symmetries": asdict(symmetries)}
    if validation is None:
        return found
    errors = measure_errors(PoseModel(network, Card.of("model", {**content, **found})), validation)
    return found | ({} if errors is None else {"angle_errors": asdict(errors)})


@torch.no_grad()
def about_shapes(
    network: nn.Module, config: TrainConfig, data: Shapes, validation: Shapes | None, content: Mapping[str, Any], *,
    points: int,
) -> dict[str, Any]:  # fmt: skip
    """The mean pose of the training shapes of each class, from which its rotations are measured, and their error.

    The pose of a class whose shapes have none in common is zero. The arguments are those of :func:`about_images`,
    and how many points of each shape the training drew.
    """
    clouds = PaddedClouds.of(data.surfaces.draw(points, torch.Generator().manual_seed(0)))
    answer = on_cpu(network.eval())
    poses = true_poses(CapsOutput.cat([answer(*part) for part in clouds.split(BATCH)]), data.labels)
    own = [poses[data.labels == label] for label in range(len(data.classes))]
    zero = poses.new_zeros(1, 9)
    means = [SO3().mean(some, torch.ones_like(some[:, 0])) if len(some) else zero[0] for some in own]
    found = {"data": data.name, "points": points, "uprights": torch.stack(means).tolist()}
    if validation is None:
        return found
    assert isinstance(network, PointCapsNet)
    model = PointModel(network, PointCard.of("model", {**content, **found}))
    errors = measure_rotation_errors(model, validation, upright=config.objective.upright)
    return found | ({} if errors is None else {"angle_errors": errors})
