"""Spatial aggregation of capsules with pose-aligned kernels (Section 3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_count
from equicaps.functional import (
    Agreement,
    Capsules,
    Routing,
    Sigma,
    Sigmoid,
    route,
    route_windows,
    window_activations,
    window_votes,
)
from equicaps.functional.routing import check_options
from equicaps.groups import Group
from equicaps.nn.trainable_sigma import TrainableSigma
from equicaps.nn.transform_mlp import TransformKernel, TransformMLP

_PAPER = TransformMLP()


class SpatialCapsules2d(nn.Module):
    r"""From the capsules of each window to those of the next grid: pose-aligned votes and Algorithm 1 (Section 3).

    .. math::
        \bar p = M(p_1, \dots, p_n, 1), \qquad v_{ij} = p_i \circ t_{ij}(\bar p^{-1} x_i), \qquad
        \hat p_j, \hat a_j = \mathrm{route}(v_{:j}, a)

    When the grid and its poses are rotated by a quarter turn, so are those of the output, ``layer(g P).poses == g
    layer(P).poses``, and activations only move with the grid. This is exact up to rounding, whatever the parameters.
    The generator t is continuous and shared by all windows. :func:`equicaps.functional.route_windows` chooses the
    implementation of Algorithm 1.

    Args:
        group: the group of the poses; it must act on the plane (``point_dim == 2``).
        in_capsules: the number of capsules at each input position.
        out_capsules: the number of capsules at each output position.
        kernel_size: the side of the square windows.
        stride: the stride of the windows, which must reach from edge to edge.
        kernel: the generator of t.
        iterations: the number of routing iterations; 0 is the control without routing.
        sigma: σ and the initial values of its parameters, which are trained.
        agreement: see :func:`equicaps.functional.route`.
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
        sizes = {"in_capsules": in_capsules, "out_capsules": out_capsules, "kernel_size": kernel_size, "stride": stride}
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
        """Draw new transformations and reset σ."""
        self.generator.reset_parameters()
        self.trained_sigma.reset_parameters()

    @property
    def sigma(self) -> Sigma:
        """σ with the current parameters."""
        return self.trained_sigma.value

    def forward(self, capsules: Capsules) -> Capsules:
        """Capsules on a grid to capsules on the next, coarser one."""
        return route_windows(
            self.group, self.generator, capsules, kernel_size=self.kernel_size, stride=self.stride,
            iterations=self.iterations, sigma=self.sigma, agreement=self.agreement,
        )  # fmt: skip

    @torch.no_grad()
    def calibrate(self, capsules: Capsules, spread: float = 1.5) -> Capsules:
        r"""Set the parameters of a sigmoid σ such that activations spread around ½; returns those for ``capsules``.

        .. math:: α = s / \mathrm{std}(\bar δ), \qquad β = α\, \mathrm{mean}(\bar δ)

        over the mean distances :math:`\bar δ` of votes from the poses that are defined. With α = β = 2 all activations
        of a fresh layer are nearly the same, and nothing is learned from them. Other σ, and inputs without at least two
        defined poses that do not saturate σ, change nothing.

        Args:
            capsules: typical input.
            spread: s, the standard deviation of the argument of σ.
        """
        out = self(capsules)
        changed = self.trained_sigma.calibrate(out.activations[self.group.presence(out.poses) == 1], spread)
        return self(capsules) if changed else out

    def votes(self, poses: Float[Tensor, "b c h w d"]) -> Float[Tensor, "b y x m n d"]:
        """The votes of every window, its n = c·k inputs sorted by capsule, then by position in reading order."""
        return window_votes(self.group, self.generator, poses, kernel_size=self.kernel_size, stride=self.stride)

    def routing(self, capsules: Capsules) -> Routing:
        """Poses (b, y, x, m, d), activations and routing weights (b, y, x, m, n) of every window, by plain route."""
        poses, activations = capsules
        inputs = window_activations(activations, kernel_size=self.kernel_size, stride=self.stride)
        return route(
            self.group, self.votes(poses), inputs, iterations=self.iterations, sigma=self.sigma,
            agreement=self.agreement,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_capsules} -> {self.out_capsules} capsules on {self.group!r}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, iterations={self.iterations}, "
            f"agreement={self.agreement!r}"
        )
