"""Spatial aggregation of capsules on the points of a cloud (Section 3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_count, check_floating, check_positive
from equicaps.functional import Sigma, Sigmoid
from equicaps.functional.point_frames import PointPoses
from equicaps.functional.point_routing import nearest_neighbours, point_votes, route_points
from equicaps.functional.routing import Routing, check_options
from equicaps.groups import Group
from equicaps.nn.trainable_sigma import TrainableSigma
from equicaps.nn.transform_mlp import TransformKernel, TransformMLP

_PAPER = TransformMLP()


class PointCapsules(nn.Module):
    r"""From the capsules of a cloud to those of coarser points: pose-aligned votes and Algorithm 1 (Section 3).

    .. math::
        \bar p = M(p_1, \dots, p_n, w), \qquad v_{ij} = p_i \circ t_{ij}(\bar p^{-1} u_i), \qquad
        \hat p_j, \hat a_j = \mathrm{route}(v_{:j}, w a)

    over the neighbours of each coarse point, with offsets u in radii and rim weights w; see
    :func:`equicaps.functional.route_points`. Theorems 1 and 2, for every rotation R, whatever the parameters: when
    points and poses are rotated together, poses of the output rotate with them, and activations do not change. The
    order of the points does not matter, nor do points of weight 0. All of this is exact up to rounding where the means
    are defined; elsewhere poses and activations fade to 0.

    Args:
        group: the group of the poses; it must act on space (``point_dim == 3``).
        in_capsules: n, the number of capsules at each point.
        out_capsules: m, the number of capsules at each coarse point.
        radius: the largest distance of a neighbour.
        neighbours: their largest number; see :func:`equicaps.functional.point_routing.nearest_neighbours`.
        kernel: the generator of t.
        iterations: the number of routing iterations; 0 is the control without routing.
        sigma: σ and the initial values of its parameters, which are trained.
    """

    def __init__(
        self,
        group: Group,
        in_capsules: int,
        out_capsules: int,
        *,
        radius: float,
        neighbours: int = 16,
        kernel: TransformKernel = _PAPER,
        iterations: int = 2,
        sigma: Sigma = Sigmoid(),
    ) -> None:
        super().__init__()
        if not isinstance(group, Group) or group.point_dim != 3:
            raise ValueError(
                f"PointCapsules: `group` must act on space (point_dim == 3), such as SO3() or SE3(), but is {group!r}."
            )
        sizes = {"in_capsules": in_capsules, "out_capsules": out_capsules, "neighbours": neighbours}
        for name, value in sizes.items():
            check_count("PointCapsules", name, value)
        check_positive("PointCapsules", "radius", radius)
        if not isinstance(kernel, TransformKernel):
            raise TypeError(
                f"PointCapsules: `kernel` must be TransformMLP(...) or TransformLinear(...), but is {kernel!r}."
            )
        check_options("PointCapsules", iterations, sigma, "mean")
        self.group = group
        self.in_capsules = in_capsules
        self.out_capsules = out_capsules
        self.radius = radius
        self.neighbours = neighbours
        self.iterations = iterations
        self.trained_sigma = TrainableSigma(sigma)
        self.generator = kernel.build(group, in_capsules, out_capsules)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new transformations and reset σ."""
        self.generator.reset_parameters()
        self.trained_sigma.reset_parameters()

    @property
    def sigma(self) -> Sigma:
        """σ with the current parameters."""
        return self.trained_sigma.value

    def forward(
        self,
        points: Float[Tensor, "batch n 3"],
        capsules: PointPoses,
        centres: Float[Tensor, "batch i 3"],
        weights: Float[Tensor, "batch n"] | None = None,
        centre_weights: Float[Tensor, "batch i"] | None = None,
    ) -> PointPoses:
        """Capsules at the points of a cloud to capsules at ``centres``.

        Points and centres of weight 0 are only padding: those do not vote, these have no activation.
        """
        poses, activations, _ = self.routing(points, capsules, centres, weights)
        if centre_weights is not None:
            activations = torch.where(centre_weights.unsqueeze(-1) > 0, activations, 0)
        return PointPoses(poses, activations)

    def routing(
        self,
        points: Float[Tensor, "batch n 3"],
        capsules: PointPoses,
        centres: Float[Tensor, "batch i 3"],
        weights: Float[Tensor, "batch n"] | None = None,
    ) -> Routing:
        """The same with the routing weights (batch, i, m, n·k), sorted by capsule, then by neighbour."""
        self._check(points, capsules)
        weights = points.new_ones(points.shape[:2]) if weights is None else weights
        near = nearest_neighbours(points, weights, centres, radius=self.radius, count=self.neighbours)
        return route_points(self.group, self.generator, near, capsules, iterations=self.iterations, sigma=self.sigma)

    def votes(
        self,
        points: Float[Tensor, "batch n 3"],
        poses: Float[Tensor, "batch n c d"],
        centres: Float[Tensor, "batch i 3"],
    ) -> Float[Tensor, "batch i m v d"]:
        """The votes in every neighbourhood, sorted by capsule, then by neighbour."""
        weights = points.new_ones(points.shape[:2])
        near = nearest_neighbours(points, weights, centres, radius=self.radius, count=self.neighbours)
        return point_votes(self.group, self.generator, near, poses)

    @torch.no_grad()
    def calibrate(
        self,
        points: Float[Tensor, "batch n 3"],
        capsules: PointPoses,
        centres: Float[Tensor, "batch i 3"],
        weights: Float[Tensor, "batch n"] | None = None,
        centre_weights: Float[Tensor, "batch i"] | None = None,
        *,
        spread: float = 1.5,
    ) -> PointPoses:
        """Set the parameters of a sigmoid σ such that activations spread around ½; returns those for this input.

        As in :meth:`SpatialCapsules2d.calibrate`. Centres of weight 0 do not count.
        """
        out = self(points, capsules, centres, weights, centre_weights)
        changed = self.trained_sigma.calibrate(out.activations[self.group.presence(out.poses) == 1], spread)
        return self(points, capsules, centres, weights, centre_weights) if changed else out

    def _check(self, points: Tensor, capsules: PointPoses) -> None:
        where, (poses, activations) = "PointCapsules", capsules
        check_floating(where, "points", points)
        check_alike(
            where,
            {
                "points": points,
                "poses": poses,
                "activations": activations,
                "the layer's parameters": self.generator.weight,
            },
        )
        expected = (*points.shape[:2], self.in_capsules, self.group.dim)
        if tuple(poses.shape) != expected:
            raise ValueError(
                f"{where}: `poses` must have shape {expected} for {self.in_capsules} input capsules on {self.group!r} "
                f"at each of {points.shape[1]} points, but has shape {tuple(poses.shape)}."
            )
        if activations.shape != poses.shape[:-1]:
            raise ValueError(
                f"{where}: `activations` must have shape {tuple(poses.shape[:-1])}, one for each pose, "
                f"but has shape {tuple(activations.shape)}."
            )

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_capsules} -> {self.out_capsules} capsules on {self.group!r}, radius={self.radius}, "
            f"neighbours={self.neighbours}, iterations={self.iterations}"
        )
