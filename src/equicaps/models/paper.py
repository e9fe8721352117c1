"""The paper's canonical architecture (Section 6.1)."""

from dataclasses import dataclass, field
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_parts
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.models.output import CapsOutput, identity_poses
from equicaps.nn import ImagePoses, PoseConv2d, SpatialCapsules2d, TransformMLP
from equicaps.nn.transform_mlp import TransformKernel


@dataclass(frozen=True)
class PaperConfig:
    """The architecture of Section 6.1: five capsule layers on 2x2 blocks, each paired with a pose-aligned convolution.

    Without ``features`` only the capsules remain, and the scores are the agreements. Without ``poses`` only the
    convolutions remain, evaluated at the identity: the paper's CNN(*), which reads 16 of the 25 control points of each
    kernel. The capsules have 144,410 parameters with the MLP generator (144,970 with ``TransformLinear()``; the paper
    says 145k), the spline convolutions 106,154 (the paper says 90k).
    """

    num_classes: int = 10
    in_channels: int = 1
    widths: tuple[int, ...] = (16, 32, 32, 64)
    kernel: TransformKernel = field(default_factory=TransformMLP)
    features: bool = True
    poses: bool = True

    def __post_init__(self) -> None:
        check_parts(self.features, self.poses)

    def grid(self, side: int) -> int | None:
        """The side of the last grid for an image of this side; None where a quarter turn would not be exact."""
        blocks = 2 ** (len(self.widths) + 1)
        return None if side % blocks else side // blocks


class PaperNet(nn.Module):
    """The paper's network, from images to class capsules, which are averaged over all blocks of a larger image."""

    def __init__(self, config: PaperConfig) -> None:
        super().__init__()
        self.config = config
        self.image_poses = ImagePoses("sobel")
        widths = list(pairwise((config.in_channels, *config.widths, config.num_classes)))
        routed = widths if config.poses else []
        self.layers = nn.ModuleList(SpatialCapsules2d(SO2(), n, m, kernel=config.kernel) for n, m in routed)
        convolved = widths if config.features else []
        self.convolutions = nn.ModuleList(PoseConv2d(n, m, kernel_size=2, stride=2) for n, m in convolved)

    def capsules(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """The capsules after every layer."""
        current, after = self.image_poses(images), []
        for layer in self.layers:
            current = layer(current)
            after.append(current)
        return after

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """Scores, agreements and poses of the class capsules."""
        return self.answer(images, self.capsules(images))

    def answer(self, images: Float[Tensor, "batch channels height width"], capsules: list[Capsules]) -> CapsOutput:
        """The output of :meth:`forward`, computed from the images and their :meth:`capsules`."""
        capsules = capsules if self.config.poses else self._upright(images)
        poses, agreement = whole_image(capsules[-1])
        scores = agreement
        if self.config.features:
            features = images
            for number, (convolution, (at, activations)) in enumerate(zip(self.convolutions, capsules, strict=True), 1):
                features = convolution(features, at) * activations
                features = F.relu(features) if number < len(capsules) else features
            scores = features.mean((-2, -1))
        return CapsOutput(scores.flatten(1), agreement.flatten(1), poses.flatten(1, 3))

    def _upright(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """Capsules at the identity with activation 1, for the network without poses."""
        height, width = images.shape[-2:]
        grids = []
        for level, convolution in enumerate(self.convolutions, 1):
            assert isinstance(convolution, PoseConv2d)
            poses = identity_poses(images, convolution.out_channels, height >> level, width >> level)
            grids.append(Capsules(poses, torch.ones_like(poses[..., 0])))
        return grids


def whole_image(capsules: Capsules) -> Capsules:
    """Merge the blocks of a large image into one: the mean pose, and the mean activation as far as the poses agree."""
    if capsules.activations.shape[-2:] == (1, 1):
        return capsules
    group, (poses, activations) = SO2(), (capsules.poses.flatten(2, 3), capsules.activations.flatten(2))
    mean = group.mean(poses, activations)
    agreement = activations.mean(-1) * group.presence(mean)
    return Capsules(mean[:, :, None, None], agreement[:, :, None, None])
