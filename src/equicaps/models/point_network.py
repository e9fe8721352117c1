"""One network class for all presets on points."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_floating
from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.point_frames import PointPoses
from equicaps.models.output import CapsOutput
from equicaps.models.points import PointsConfig, PointsNet
from equicaps.models.points_paper import PointsPaperConfig, PointsPaperNet
from equicaps.numerics import at_most_one, full_precision

POINT_PRESETS = ("points", "points-paper")
"""The steerable network, and the paper's construction with SO(3)."""


def check_point_preset(name: str) -> None:
    """Raise unless there is such a preset for points."""
    if name not in POINT_PRESETS:
        raise ValueError(f"unknown preset {name!r}; choose one of {', '.join(map(repr, POINT_PRESETS))}.")


class PointCapsNet(nn.Module):
    """Maps clouds of points to class scores, agreements and poses, such that rotating a cloud rotates only its poses.

    This holds for every rotation of space, up to rounding: there is no grid. Nor do scores depend on where a cloud is,
    on the order of its points, or on points of weight 0. A mirror image is another shape. All of it is computed in the
    precision of its parameters, also under autocast.

    Args:
        body: the part that maps clouds to class capsules.
    """

    def __init__(self, body: PointsNet | PointsPaperNet) -> None:
        super().__init__()
        self.body = body

    @classmethod
    def from_preset(cls, name: str, *, num_classes: int = 10) -> "PointCapsNet":
        """Build the network of a preset, one of :data:`POINT_PRESETS`."""
        check_point_preset(name)
        if name == "points":
            return cls(PointsNet(PointsConfig(num_classes)))
        return cls(PointsPaperNet(PointsPaperConfig(num_classes)))

    @full_precision
    def forward(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> CapsOutput:
        """The class capsules of a batch of clouds; their poses are flattened 3x3 matrices.

        Args:
            points: the clouds, anywhere in space.
            weights: how far each point counts, not negative; 0 for padding. A common factor does not matter. By default
                all count alike.
        """
        output: CapsOutput = self.body(points, self._checked(points, weights))
        return output

    @full_precision
    def capsules(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> list[CapsuleCloud] | list[PointPoses]:
        """The capsules after every layer (of the steerable network, but the last)."""
        return self.body.capsules(points, self._checked(points, weights))

    @property
    def needs_calibration(self) -> bool:
        """Whether a new network of this kind learns better after :meth:`calibrate`."""
        return isinstance(self.body, PointsPaperNet)

    def calibrate(self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None) -> None:
        """Prepare new parameters for clouds like these, before the first step of a training and never again."""
        if isinstance(self.body, PointsPaperNet):
            self.body.calibrate(points, weights)

    def parameter_counts(self) -> tuple[int, int]:
        """The number of parameters, and 0, because there is no decoder."""
        return sum(parameter.numel() for parameter in self.parameters()), 0

    def _checked(self, points: Tensor, weights: Tensor | None) -> Tensor:
        where = "PointCapsNet"
        check_floating(where, "points", points)
        if points.ndim != 3 or points.shape[-1] != 3 or points.shape[1] == 0:
            raise ValueError(
                f"{where}: `points` must have shape (batch, n, 3) with at least one point, but has shape "
                f"{tuple(points.shape)}."
            )
        weights = torch.ones_like(points[..., 0]) if weights is None else weights
        check_alike(where, {"points": points, "weights": weights, "the network's parameters": next(self.parameters())})
        if weights.shape != points.shape[:2]:
            raise ValueError(
                f"{where}: `weights` must have shape {tuple(points.shape[:2])}, one for each point, but has shape "
                f"{tuple(weights.shape)}."
            )
        return at_most_one(weights)
