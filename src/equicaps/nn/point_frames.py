"""First poses of a cloud as a layer."""

from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_positive
from equicaps.functional.point_frames import PointPoses, point_frames


class PointFrames(nn.Module):
    """One SO(3) capsule at each centre, from its neighbourhood; see :func:`equicaps.functional.point_frames`.

    Poses rotate with the cloud, ``frames(R x).poses == R ∘ frames(x).poses``, and activations do not change: exact up
    to rounding for every rotation. There are no parameters.

    Args:
        radius: of the neighbourhoods.
    """

    def __init__(self, radius: float) -> None:
        super().__init__()
        check_positive("PointFrames", "radius", radius)
        self.radius = radius

    def forward(
        self,
        points: Float[Tensor, "batch n 3"],
        weights: Float[Tensor, "batch n"] | None = None,
        centres: Float[Tensor, "batch i 3"] | None = None,
    ) -> PointPoses:
        """Frames at ``centres``, by default at every point; points of weight 0 are only padding."""
        weights = points.new_ones(points.shape[:2]) if weights is None else weights
        return point_frames(points, weights, points if centres is None else centres, radius=self.radius)

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return f"(R^3)^n -> SO(3)^n, radius={self.radius}"
