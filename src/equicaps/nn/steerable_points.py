"""Steerable capsules on points of space."""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_alike, check_choice, check_count, check_floating, check_positive
from equicaps.functional.capsule_cloud import CapsuleCloud
from equicaps.functional.point_choice import PointChoice
from equicaps.functional.point_moments import capsule_moments, cloud_moments, mean_moments, own_moments
from equicaps.functional.steering import Moments
from equicaps.nn.steered_capsules import SteeredCapsules


class FirstPointCapsules(nn.Module):
    r"""The first layer on points: capsules from the smooth moments of each centre's neighbourhood.

    Rotating the cloud rotates the poses and changes no activation, for every rotation, up to rounding; so do other
    orders of the points, and points of weight 0. Where a neighbourhood is symmetric poses fall to zero.

    Args:
        out_capsules: the number of capsules at each centre.
        radius: of the neighbourhoods.
        rings: the number of radial bumps.
    """

    def __init__(self, out_capsules: int, *, radius: float, rings: int = 4) -> None:
        super().__init__()
        check_positive("FirstPointCapsules", "radius", radius)
        check_count("FirstPointCapsules", "rings", rings)
        self.radius, self.rings = radius, rings
        self.capsules = SteeredCapsules(rings + 3, 2 * rings + 3, rings + 1, out_capsules)

    def forward(
        self,
        points: Float[Tensor, "batch n 3"],
        weights: Float[Tensor, "batch n"],
        centres: Float[Tensor, "batch m 3"],
        centre_weights: Float[Tensor, "batch m"],
    ) -> CapsuleCloud:
        """Capsules at the centres of clouds around the origin."""
        tensors = {"points": points, "weights": weights, "centres": centres, "centre_weights": centre_weights}
        for name, tensor in tensors.items():
            check_floating("FirstPointCapsules", name, tensor)
        check_alike("FirstPointCapsules", tensors)
        moments = cloud_moments(centres, points, weights, radius=self.radius, rings=self.rings)
        poses, features = self.capsules(moments, centre_weights.flatten() > 0)
        return _cloud(centres, centre_weights, poses, F.relu(features))

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return f"points -> capsules on SO(3), radius {self.radius:g}, {self.rings} rings"


class SteerablePointCapsules(nn.Module):
    r"""Pose by agreement and group convolution at that pose, on neighbourhoods of points.

    A capsule carries a feature f and a frame :math:`p = (e_1\, e_2\, e_3)`. Scalars, vectors and symmetric matrices
    are gathered from all capsules within the radius of each centre (:func:`.capsule_moments`) and from those at the
    centre itself, and :class:`.SteeredCapsules` makes new capsules of them: the group convolution of Theorem 3 with a
    kernel on relative positions and relative poses, evaluated at the pose on which the votes agree.

    Rotating positions and poses rotates the new poses and changes no activation, for every rotation, up to rounding.
    The order of the points does not matter, weights fall smoothly to zero at the rim, and a point of weight 0 does not
    count.

    Args:
        in_capsules: the number of capsules at each point.
        out_capsules: the number of capsules at each centre.
        radius: of the neighbourhoods, not much smaller than the cloud: moments are shifted from its centre.
        rings: the number of radial bumps.
        order: of the kernel in the relative position, 1 or 2.
        central: whether the only centre is the origin.
        skipped: the number of capsules of an earlier layer, whose means over the cloud a central layer reads, too.
    """

    def __init__(
        self, in_capsules: int, out_capsules: int, *, radius: float, rings: int = 2, order: int = 2,
        central: bool = False, skipped: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        for name in ("in_capsules", "rings"):
            check_count("SteerablePointCapsules", name, locals()[name])
        check_positive("SteerablePointCapsules", "radius", radius)
        check_choice("order", order, (1, 2))
        self.in_capsules, self.radius, self.rings = in_capsules, radius, rings
        self.order, self.central, self.skipped = order, central, skipped
        if skipped and not central:
            raise ValueError("SteerablePointCapsules: only a central layer can read `skipped` capsules.")
        own = skipped if central else in_capsules
        at_centre = 0 if central else 1
        gathered = rings * in_capsules
        self.capsules = SteeredCapsules(
            gathered + own, 4 * gathered + 3 * own + at_centre, gathered if order == 2 else 0, out_capsules
        )

    def forward(
        self, cloud: CapsuleCloud, chosen: PointChoice | None = None, skipped: CapsuleCloud | None = None
    ) -> CapsuleCloud:
        """New capsules at some of the points or, in a central layer, at the origin.

        Args:
            cloud: capsules at points around the origin.
            chosen: the points that are centres; not given for a central layer.
            skipped: those of an earlier layer, if this one reads them.
        """
        self._check(cloud, chosen, skipped)
        if chosen is None:
            centres = cloud.positions.new_zeros(cloud.positions.shape[0], 1, 3)
            moments = [self._gathered(centres, cloud), *([] if skipped is None else [mean_moments(skipped)])]
            weights = cloud.weights.new_ones(centres.shape[0], 1)
        else:
            own = cloud.take(chosen.indices, chosen.weights)
            centres, weights = own.positions, own.weights
            moments = [self._gathered(centres, cloud), own_moments(own), _places(centres)]
        poses, features = self.capsules(Moments.cat(moments), weights.flatten() > 0)
        return _cloud(centres, weights, poses, F.relu(features))

    def _gathered(self, centres: Tensor, cloud: CapsuleCloud) -> Moments:
        return capsule_moments(centres, cloud, radius=self.radius, rings=self.rings, order=self.order)

    def _check(self, cloud: CapsuleCloud, chosen: PointChoice | None, skipped: CapsuleCloud | None) -> None:
        where, count = "SteerablePointCapsules", self.in_capsules
        for name, tensor in cloud._asdict().items():
            check_floating(where, name, tensor)
        check_alike(where, cloud._asdict())
        if cloud.activations.ndim != 3 or cloud.activations.shape[-1] != count:
            raise ValueError(
                f"{where}: `activations` must have shape (batch, n, {count}) for {count} input capsules, but has shape "
                f"{tuple(cloud.activations.shape)}."
            )
        if (chosen is None) != self.central:
            expected = (
                "no `chosen` points, because its only centre is the origin" if self.central else "`chosen` points"
            )
            raise ValueError(f"{where}: this layer needs {expected}.")
        given = 0 if skipped is None else skipped.activations.shape[-1]
        if given != self.skipped:
            raise ValueError(f"{where}: this layer reads {self.skipped} `skipped` capsules, but {given} were given.")

    def extra_repr(self) -> str:
        """The mathematical signature."""
        where = "at the origin" if self.central else f"order {self.order}"
        return f"{self.in_capsules} capsules on SO(3), radius {self.radius:g}, {self.rings} rings, {where}"


def _places(centres: Float[Tensor, "batch m 3"]) -> Moments:
    """Where the centres are, as seen from the origin."""
    at = centres.flatten(0, 1)
    return Moments(at.new_zeros(at.shape[0], 0), at.T.unsqueeze(-1), at.new_zeros(6, at.shape[0], 0))


def _cloud(centres: Tensor, weights: Tensor, poses: Tensor, features: Tensor) -> CapsuleCloud:
    places = centres.shape[:2]  # of a program that is exported, which `len` would fix
    return CapsuleCloud(centres, weights, poses.unflatten(0, places), features.unflatten(0, places))
