"""Spatial aggregation of capsules with pose-aligned kernels (Section 3)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_count, check_floating, check_window_grid
from equicaps.functional import Agreement, Capsules, Linear, Routing, Sigma, Sigmoid, route
from equicaps.functional.alignment import align, mean_pose, window_positions, windows
from equicaps.functional.moment_routing import MomentRouting, moment_route
from equicaps.functional.planar_routing import planar_mean_pose, planar_route
from equicaps.functional.routing import check_options
from equicaps.groups import SO2, Group
from equicaps.nn.trainable_sigma import TrainableSigma
from equicaps.nn.transform_mlp import TransformKernel, TransformMLP
from equicaps.numerics import full_precision

_PAPER = TransformMLP()


class SpatialCapsules2d(nn.Module):
    r"""Capsules of a window to capsules of the next grid: pose-aligned votes, then Algorithm 1 (Section 3).

    .. math::
        \bar p = M(p_1, \dots, p_n, 1), \qquad v_{ij} = p_i \circ t_{ij}(\bar p^{-1} x_i), \qquad
        \hat p_j, \hat a_j = \mathrm{route}(v_{:j}, a)

    Turn the grid and every pose by 90 degrees: poses of the output grid turn, ``layer(g P).poses == g
    layer(P).poses``, and activations only move with the grid. Exact to rounding, whatever the parameters; the generator
    t is shared over positions and continuous. On SO(2) with a sigmoid, votes are routed in pieces
    (:func:`equicaps.functional.planar_route`) and windows without activity are skipped: their poses are undefined and
    pass no gradient. With a linear σ their moments are routed (:func:`equicaps.functional.moment_route`). All other
    cases, and traced programs, take the plain :func:`route`.

    Args:
        group: of the poses; it must act on the plane (``point_dim == 2``).
        in_capsules: capsules of each input position.
        out_capsules: capsules of each output position.
        kernel_size: of the square window.
        stride: of the windows; they must reach from edge to edge.
        kernel: the generator of t.
        iterations: of routing; 0 is the control without routing.
        sigma: σ and the starting values of its parameters, which are trained.
        agreement: see :func:`route`.
    """

    def __init__(
        self,
        group: Group,
        in_capsules: int,
        out_capsules: int,
        kernel_size: int = 2,
        stride: int = 2,
        *,
        kernel: TransformKernel = _PAPER,
        iterations: int = 2,
        sigma: Sigma = Sigmoid(),
        agreement: Agreement = "mean",
    ) -> None:
        super().__init__()
        if not isinstance(group, Group) or group.point_dim != 2:
            raise ValueError(
                "SpatialCapsules2d: `group` must act on the plane (point_dim == 2), such as SO2(), SE2(), Scale(2) or "
                f"GL(2), but is {group!r}."
            )
        sizes = {
            "in_capsules": in_capsules,
            "out_capsules": out_capsules,
            "kernel_size": kernel_size,
            "stride": stride,
        }
        for name, value in sizes.items():
            check_count("SpatialCapsules2d", name, value)
        if not isinstance(kernel, TransformKernel):
            raise TypeError(
                f"SpatialCapsules2d: `kernel` must be TransformMLP(...) or TransformLinear(...), but is {kernel!r}."
            )
        check_options("SpatialCapsules2d", iterations, sigma, agreement)
        self.group = group
        self.in_capsules = in_capsules
        self.out_capsules = out_capsules
        self.kernel_size = kernel_size
        self.stride = stride
        self.iterations = iterations
        self.agreement: Agreement = agreement
        self.trained_sigma = TrainableSigma(sigma)
        self.generator = kernel.build(group, in_capsules, out_capsules)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new transformations and start σ anew."""
        self.generator.reset_parameters()
        self.trained_sigma.reset_parameters()

    @property
    def sigma(self) -> Sigma:
        """σ with the parameters as they are now."""
        return self.trained_sigma.value

    def forward(self, capsules: Capsules) -> Capsules:
        """Capsules on a grid to capsules on the next, coarser one."""
        poses, activations = capsules
        self._check(poses, activations)
        # Exactly these: a subclass may mean something else.
        turns, sigma = type(self.group) is SO2, type(self.trained_sigma.start)
        if turns and sigma is Sigmoid and not torch.compiler.is_compiling():
            return self._route_planar(poses, activations)
        routing: MomentRouting | Routing
        if turns and sigma is Linear:
            routing = moment_route(
                self.votes(poses), self._inputs(activations), iterations=self.iterations, agreement=self.agreement
            )
        else:
            routing = self.routing(capsules)
        return Capsules(routing.poses.movedim(3, 1), routing.activations.movedim(3, 1))

    @full_precision
    def votes(self, poses: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b y x m n d"]:
        """The votes of every window, its n = c·k inputs sorted by capsule, then by position in reading order."""
        inputs = windows(poses.movedim(-1, 1), self.kernel_size, self.stride).permute(0, 3, 4, 2, 5, 1)
        mean = mean_pose(self.group, inputs if self.generator.linear else inputs.flatten(-3, -2))
        t = self.generator(self._aligned(mean)).movedim(3, -2)
        return self.group.compose(inputs.unsqueeze(3), t).flatten(-3, -2)

    def routing(self, capsules: Capsules) -> Routing:
        """Poses (b, y, x, m, d), activations and routing weights (b, y, x, m, n) of every window, by plain route."""
        poses, activations = capsules
        self._check(poses, activations)
        votes, a = self.votes(poses), self._inputs(activations)
        return route(self.group, votes, a, iterations=self.iterations, sigma=self.sigma, agreement=self.agreement)

    def _inputs(self, activations: Float[Tensor, "b c h w"]) -> Float[Tensor, "b y x n"]:
        return windows(activations, self.kernel_size, self.stride).permute(0, 2, 3, 1, 4).flatten(-2)

    def _aligned(self, mean: Float[Tensor, "*batch d"]) -> Float[Tensor, "*windows k i"]:
        """Positions under the mean pose of the window, or in the linear form under that of every channel."""
        positions = window_positions(self.kernel_size, dtype=mean.dtype, device=mean.device)
        aligned = align(self.group, mean, positions)
        return aligned.transpose(-3, -2).flatten(-2) if self.generator.linear else aligned

    @full_precision
    def _route_planar(self, poses: Float[Tensor, "b c h w 2"], activations: Float[Tensor, "b c h w"]) -> Capsules:
        a = windows(activations, self.kernel_size, self.stride)
        grid = (a.shape[0], a.shape[2], a.shape[3])
        a = a.permute(1, 4, 0, 2, 3).flatten(2)
        p = windows(poses.movedim(-1, 1), self.kernel_size, self.stride).permute(1, 2, 5, 0, 3, 4).flatten(3)
        active = (a != 0).any(0).any(0).nonzero().squeeze(1)  # elsewhere nobody votes: poses are undefined
        p, a = p.index_select(-1, active), a.index_select(-1, active)
        mean = planar_mean_pose(p, together=not self.generator.linear)
        features = self.generator.features(self._aligned(mean.movedim(-2, 0)))
        routed = planar_route(
            features.permute(2, 1, 0).contiguous(),
            self.generator.weight,
            p,
            a,
            self.trained_sigma.get_parameter("alpha"),
            self.trained_sigma.get_parameter("beta"),
            iterations=self.iterations,
            weighted=self.agreement == "weighted",
        )
        everywhere = torch.cat((routed.poses, routed.activations.unsqueeze(0)))
        everywhere = everywhere.new_zeros(3, self.out_capsules, math.prod(grid)).index_copy(-1, active, everywhere)
        everywhere = everywhere.unflatten(-1, grid).transpose(1, 2)
        return Capsules(everywhere[:2].permute(1, 2, 3, 4, 0), everywhere[2])

    def _check(self, poses: Tensor, activations: Tensor) -> None:
        where, c, d = "SpatialCapsules2d", self.in_capsules, self.group.dim
        check_floating(where, "poses", poses)
        check_floating(where, "activations", activations)
        tensors = {"poses": poses, "activations": activations, "the layer's parameters": self.generator.weight}
        check_alike(where, tensors)
        if poses.ndim != 5 or poses.shape[1] != c or poses.shape[-1] != d:
            raise ValueError(
                f"{where}: `poses` must have shape (batch, {c}, height, width, {d}) for {c} input capsules on "
                f"{self.group!r}, but has shape {tuple(poses.shape)}."
            )
        if activations.shape != poses.shape[:-1]:
            raise ValueError(
                f"{where}: `activations` must have shape {tuple(poses.shape[:-1])}, one for each pose, "
                f"but has shape {tuple(activations.shape)}."
            )
        check_window_grid(where, (poses.shape[2], poses.shape[3]), self.kernel_size, self.stride)

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_capsules} -> {self.out_capsules} capsules on {self.group!r}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, iterations={self.iterations}, "
            f"agreement={self.agreement!r}"
        )
