"""The flagship for points of space: steerable capsules in every layer (``docs/space.md``)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from equicaps.functional.capsule_cloud import CapsuleCloud, gather_points
from equicaps.functional.point_choice import OTHER_WAVES, PointChoice, choose, point_invariants
from equicaps.functional.point_moments import centre, own_moments
from equicaps.models.output import CapsOutput
from equicaps.nn.steerable_points import FirstPointCapsules, SteerablePointCapsules
from equicaps.nn.steered_capsules import SteeredCapsules


@dataclass(frozen=True)
class PointsConfig:
    """The layers of a steerable network on points.

    Attributes:
        num_classes: the number of class capsules.
        widths: the numbers of capsules of the three layers before them.
        centres: the numbers of points at which the first two layers have their capsules; the third is at the origin.
        radii: of the layers' neighbourhoods, in units of the cloud's root mean square radius if ``scale``.
        rings: the numbers of radial bumps.
        scale: whether clouds of every size are alike; otherwise they should have about unit size.
    """

    num_classes: int = 10
    widths: tuple[int, int, int] = (32, 64, 76)
    centres: tuple[int, int] = (256, 64)
    radii: tuple[float, float, float] = (0.5, 1.0, 2.5)
    rings: tuple[int, int, int] = (4, 2, 1)
    scale: bool = True


class PointsNet(nn.Module):
    """The steerable network on points, from clouds to class capsules."""

    def __init__(self, config: PointsConfig) -> None:
        super().__init__()
        self.config = config
        (first, second, third), radii, rings = config.widths, config.radii, config.rings
        self.first = FirstPointCapsules(first, radius=radii[0], rings=rings[0])
        self.second = SteerablePointCapsules(first, second, radius=radii[1], rings=rings[1])
        self.third = SteerablePointCapsules(
            second, third, radius=radii[2], rings=rings[2], order=1, central=True, skipped=first
        )
        self.classes = SteeredCapsules(third, 3 * third, 0, config.num_classes)

    def capsules(self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"]) -> list[CapsuleCloud]:
        """The capsules after every layer but the last."""
        config = self.config
        centred = centre(points, weights, scale=config.scale)
        invariants = point_invariants(centred.exact, weights)
        chosen = choose(invariants, weights, config.centres[0])
        among = choose(OTHER_WAVES * invariants.gather(1, chosen.indices), chosen.weights, config.centres[1])
        at = gather_points(centred.points, chosen.indices)
        first = self.first(centred.points, weights, at, chosen.weights)
        second = self.second(first, PointChoice(*among))
        return [first, second, self.third(second, skipped=first)]

    def forward(self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"]) -> CapsOutput:
        """Scores, agreements and poses of the class capsules."""
        poses, scores, agreement = self.classes.vote(own_moments(self.capsules(points, weights)[-1]))
        return CapsOutput(scores, agreement, poses)
