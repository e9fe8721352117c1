"""The paper's canonical architecture (Section 6.1)."""

from dataclasses import dataclass, field
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_parts
from equicaps.functional import Capsules, agreement_pool
from equicaps.functional.image_poses import GradientMethod
from equicaps.functional.planar_sweep import over_window
from equicaps.groups import SO2
from equicaps.models.output import CapsOutput, identity_poses
from equicaps.nn import ImagePoses, PoseConv2d, SpatialCapsules2d, TransformMLP
from equicaps.nn.transform_mlp import TransformKernel
from equicaps.numerics import BLOCK_CANCELLATION


@dataclass(frozen=True)
class PaperConfig:
    """The architecture of Section 6.1: five capsule layers on 2x2 blocks, paired with pose-aligned convolutions.

    The convolutions see windows of 4x4 around the block of each capsule; the class capsules are paired with a linear
    map of what the last convolution finds. The capsules have 140,115 parameters (the paper says 145k; with the
    authors' ``TransformLinear()`` they have 144,970), the spline convolutions 90,938 (the paper: 90k).

    Without ``features`` only the capsules remain, and the scores are the agreements. Without ``poses`` only the
    convolutions remain, evaluated at the identity: the paper's CNN(*). Of its 90,938 parameters 58,538 are effective,
    since a window that never turns has 16 values for 25 control points.

    Attributes:
        widths: the numbers of capsules of all layers but the last.
        kernel: the transformation generator; by default positions are aligned per capsule, and its first
            transformations spread three times as far as usual.
        gradients: the first poses, see :class:`equicaps.nn.ImagePoses`.
        iterations: of the routing.
        pool_by_agreement: whether the last features are pooled with the routing weights of the class capsules (Section
            4.1) instead of averaged.
        norm: whether the convolutions are normalised over the active windows of the batch in training.
    """

    num_classes: int = 10
    in_channels: int = 1
    widths: tuple[int, ...] = (16, 32, 32, 64)
    kernel: TransformKernel = field(default_factory=lambda: TransformMLP(15, spread=1.5, per_capsule=True))
    gradients: GradientMethod = "sobel"
    iterations: int = 2
    pool_by_agreement: bool = False
    norm: bool = True
    features: bool = True
    poses: bool = True

    def __post_init__(self) -> None:
        check_parts(self.features, self.poses)
        if self.pool_by_agreement and not (self.features and self.poses):
            raise ValueError("PaperConfig: `pool_by_agreement` pools features by poses, so it needs both.")

    def grid(self, side: int) -> int | None:
        """The side of the last grid for an image of this side; None where a quarter turn would not be exact."""
        blocks = 2 ** (len(self.widths) + 1)
        return None if side % blocks else side // blocks


class PaperNet(nn.Module):
    """The paper's network, from images to class capsules, which are averaged over all blocks of a larger image."""

    def __init__(self, config: PaperConfig) -> None:
        super().__init__()
        self.config = config
        self.image_poses = ImagePoses(config.gradients)
        widths = list(pairwise((config.in_channels, *config.widths, config.num_classes)))
        group = SO2(BLOCK_CANCELLATION)
        self.layers = nn.ModuleList(
            SpatialCapsules2d(group, n, m, kernel=config.kernel, iterations=config.iterations)
            for n, m in (widths if config.poses else [])
        )
        self.convolutions = nn.ModuleList(
            PoseConv2d(n, m, kernel_size=4, stride=2, padding=1, norm=config.norm)
            for n, m in (widths[:-1] if config.features else [])
        )
        self.classifier = nn.Linear(*widths[-1]) if config.features else None

    def capsules(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """The capsules after every layer."""
        current, after = self.image_poses(images), []
        for layer in self.layers:
            current = layer(current)
            after.append(current)
        return after

    def calibrate(self, images: Float[Tensor, "batch channels height width"]) -> None:
        """Set the σ of every layer such that its activations spread around ½ on these images, before training."""
        current = self.image_poses(images)
        for layer in self.layers:
            assert isinstance(layer, SpatialCapsules2d)
            current = layer.calibrate(current)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """Scores, agreements and poses of the class capsules."""
        return self.answer(images, self.capsules(images))

    def answer(self, images: Float[Tensor, "batch channels height width"], capsules: list[Capsules]) -> CapsOutput:
        """The output of :meth:`forward`, computed from the images and their :meth:`capsules`."""
        if self.config.poses:
            poses, agreement = whole_image(capsules[-1])
        else:
            poses = identity_poses(images, self.config.num_classes, 1, 1)
            agreement = torch.ones_like(poses[..., 0])
        scores = agreement.flatten(1) if self.classifier is None else self._scores(images, capsules)
        return CapsOutput(scores, agreement.flatten(1), poses.flatten(1, 3))

    def _scores(self, images: Tensor, capsules: list[Capsules]) -> Float[Tensor, "batch classes"]:
        assert self.classifier is not None
        features = images
        for number, convolution in enumerate(self.convolutions):
            assert isinstance(convolution, PoseConv2d)
            found = convolution(features, *capsules[number]) if capsules else convolution.upright(features)
            features = F.relu(found)
        if self.config.pool_by_agreement and capsules:
            last = self.layers[-1]
            assert isinstance(last, SpatialCapsules2d)
            features = agreement_pool(features, last.routing(capsules[-2]).weights)
        scores: Tensor = self.classifier(grid_mean(features))
        return scores


def grid_mean(features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c"]:
    """The mean over the grid; over 2x2 positions it is the same to the bit after a quarter turn."""
    return over_window(features.flatten(2).unsqueeze(-1)).squeeze(-1) / (features.shape[2] * features.shape[3])


def whole_image(capsules: Capsules) -> Capsules:
    """Merge the blocks of a large image into one: the mean pose, and the mean activation as far as the poses agree."""
    if capsules.activations.shape[-2:] == (1, 1):
        return capsules
    group, (poses, activations) = SO2(), (capsules.poses.flatten(2, 3), capsules.activations.flatten(2))
    mean = group.mean(poses, activations)
    agreement = activations.mean(-1) * group.presence(mean)
    return Capsules(mean[:, :, None, None], agreement[:, :, None, None])
