"""The paper's construction on clouds of points: capsules with three-dimensional rotations, paired with convolutions."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_alike, check_floating
from equicaps.functional.point_choice import OTHER_WAVES, choose, point_invariants
from equicaps.functional.point_frames import PointPoses
from equicaps.functional.point_moments import centre
from equicaps.groups import SO3
from equicaps.models.output import CapsOutput
from equicaps.nn.point_capsules import PointCapsules
from equicaps.nn.point_conv import PointConv
from equicaps.nn.point_frames import PointFrames
from equicaps.nn.transform_mlp import TransformKernel, TransformMLP

FIRST_WAVES = 0.8
"""The factor of the invariants by which points are chosen. Each further choice divides it: few points need few waves,
which magnify rounding errors less."""
SPREAD = 0.75
"""The spread of calibrated σ, half of that on images: between two groups of votes, each iteration of a sharper routing
magnifies rounding errors tenfold."""


@dataclass(frozen=True)
class PointsPaperConfig:
    """Three layers of :class:`PointCapsules`, paired with :class:`PointConv`, on ever fewer points of a cloud.

    Lengths are in units of the root mean square distance of the cloud from its centroid, to which clouds are scaled.

    Attributes:
        widths: the numbers of capsules of all layers but the last.
        points: how many points have a frame, and how many have the capsules of each layer but the last, which are at
            the centroid.
        radii: of the frames' neighbourhoods, and of those of each layer.
        neighbours: the largest number of neighbours in each layer.
        surroundings: the same for the first convolution, which sees all points of the cloud.
        channels: the number of features for each capsule.
        kernel: the transformation generator.
        iterations: of the routing.
        scale: whether clouds are scaled; otherwise the size of a shape matters.
    """

    num_classes: int = 10
    widths: tuple[int, ...] = (8, 16)
    points: tuple[int, ...] = (256, 64, 16)
    radii: tuple[float, ...] = (0.6, 0.8, 1.6, 4.0)
    neighbours: tuple[int, ...] = (16, 12, 16)
    surroundings: int = 48
    channels: int = 4
    kernel: TransformKernel = field(default_factory=lambda: TransformMLP(16, spread=1.0, per_capsule=True))
    iterations: int = 2
    scale: bool = True

    def __post_init__(self) -> None:
        layers = len(self.widths) + 1
        if (len(self.points), len(self.radii), len(self.neighbours)) != (layers, layers + 1, layers):
            raise ValueError(
                f"PointsPaperConfig: {len(self.widths)} `widths` make {layers} layers, which need {layers} `points`, "
                f"{layers + 1} `radii` and {layers} `neighbours`, but there are {len(self.points)}, {len(self.radii)} "
                f"and {len(self.neighbours)}."
            )


class Level(NamedTuple):
    """Positions of capsules, and weights, which are 0 for those that do not count."""

    points: Float[Tensor, "batch n 3"]
    weights: Float[Tensor, "batch n"]


class PointsPaperNet(nn.Module):
    """From clouds to class capsules, such that rotating a cloud rotates only its poses.

    ``net(R x).poses == R ∘ net(x).poses`` for every rotation R, and scores and activations do not change; nothing
    changes under translations, permutations of the points, and points of weight 0. With ``scale`` neither does it under
    scalings. All of this is exact up to rounding. A mirror image is another shape.
    """

    def __init__(self, config: PointsPaperConfig) -> None:
        super().__init__()
        self.config = config
        widths = list(pairwise((1, *config.widths, config.num_classes)))
        sizes = list(zip(widths, config.radii[1:], config.neighbours, strict=True))
        self.frames = PointFrames(config.radii[0])
        self.layers = nn.ModuleList(
            PointCapsules(
                SO3(), n, m, radius=radius, neighbours=neighbours, kernel=config.kernel, iterations=config.iterations
            )
            for (n, m), radius, neighbours in sizes
        )
        inputs = [1, *(config.channels * n for n in config.widths)]
        reach = [config.surroundings, *config.neighbours[1:]]
        self.convolutions = nn.ModuleList(
            PointConv(c, m, config.channels, radius=radius, neighbours=k, norm=True)
            for c, k, ((_, m), radius, _) in zip(inputs, reach, sizes, strict=True)
        )
        self.classifier = nn.Linear(config.channels * config.num_classes, config.num_classes)

    def levels(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> list[Level]:
        """The cloud itself, centred, the points with a frame, those of each layer, and the centroid."""
        weights = points.new_ones(points.shape[:2]) if weights is None else weights
        check_floating("PointsPaperNet", "points", points)
        check_alike("PointsPaperNet", {"points": points, "weights": weights})
        levels = [Level(centre(points, weights, scale=self.config.scale).points, weights)]
        invariants = FIRST_WAVES * point_invariants(*levels[0])
        for count in self.config.points:
            indices, faded = choose(invariants, levels[-1].weights, count)
            levels.append(Level(levels[-1].points.gather(1, indices.unsqueeze(-1).expand(-1, -1, 3)), faded))
            invariants = invariants.gather(1, indices) / OTHER_WAVES
        return [*levels, Level(points.new_zeros(points.shape[0], 1, 3), points.new_ones(points.shape[0], 1))]

    def capsules(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> list[PointPoses]:
        """The capsules after every layer."""
        return self._capsules(self.levels(points, weights))

    def _capsules(self, levels: list[Level]) -> list[PointPoses]:
        current, after = self.frames(*levels[0], levels[1].points), []
        for layer, here, there in zip(self.layers, levels[1:], levels[2:], strict=False):
            current = layer(here.points, current, there.points, here.weights, there.weights)
            after.append(current)
        return after

    @torch.no_grad()
    def calibrate(self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None) -> None:
        """Set the σ of every layer such that its activations spread around ½ on these clouds, before training."""
        levels = self.levels(points, weights)
        current = self.frames(*levels[0], levels[1].points)
        for layer, here, there in zip(self.layers, levels[1:], levels[2:], strict=False):
            assert isinstance(layer, PointCapsules)
            current = layer.calibrate(here.points, current, there.points, here.weights, there.weights, spread=SPREAD)

    def forward(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> CapsOutput:
        """Scores, agreements and poses (3x3 matrices, row by row) of the class capsules.

        Args:
            points: clouds, anywhere in space.
            weights: in [0, 1], by default 1; 0 for points that are only padding.
        """
        levels = self.levels(points, weights)
        capsules = self._capsules(levels)
        features, sources = torch.ones_like(levels[0].points[..., :1]), [levels[0], *levels[2:]]
        for convolution, found, here, there in zip(self.convolutions, capsules, sources, levels[2:], strict=False):
            features = F.relu(convolution(here.points, features, there.points, found, here.weights))
        poses, agreement = capsules[-1]
        return CapsOutput(self.classifier(features.squeeze(1)), agreement.squeeze(1), poses.squeeze(1))
