"""Algorithm 1 in every window of a grid (Section 3), and the one place that chooses its implementation."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps._checks import check_alike, check_floating, check_window_grid
from equicaps.functional.alignment import align, mean_pose, window_positions, windows
from equicaps.functional.capsules import Capsules
from equicaps.functional.fused_routing import fused_route, fused_route_fits
from equicaps.functional.moment_routing import MomentRouting, moment_route
from equicaps.functional.planar_routing import planar_mean_pose, planar_route
from equicaps.functional.planes import active_windows, on_grid
from equicaps.functional.routing import Agreement, Routing, check_options, route
from equicaps.functional.sigma import Sigma, Sigmoid
from equicaps.groups import Group
from equicaps.numerics import full_precision


@runtime_checkable
class Transformations(Protocol):
    """The generator t of Equation 9, as :class:`equicaps.nn.TransformGenerator` implements it.

    A call and ``features`` followed by ``weight`` must give the same transformations: implementations of Algorithm 1
    use the one or the other.
    """

    @property
    def per_capsule(self) -> bool:
        """Whether positions are aligned with each input capsule's own mean pose instead of the window's."""

    @property
    def weight(self) -> Float[Tensor, "e m c f"]:
        """The map from features to Lie algebra vectors or, with e = 2 on SO(2), to vectors that are normalised."""

    def features(self, aligned: Float[Tensor, "*batch i"]) -> Float[Tensor, "*batch f"]:
        """The input of ``weight`` for every aligned position."""

    def __call__(self, aligned: Float[Tensor, "*batch i"]) -> Float[Tensor, "*batch m c d"]:
        """The group elements for every aligned position."""


def route_windows(
    group: Group,
    generator: Transformations,
    capsules: Capsules,
    *,
    kernel_size: int = 2,
    stride: int = 2,
    iterations: int = 2,
    sigma: Sigma = Sigmoid(),
    agreement: Agreement = "mean",
) -> Capsules:
    r"""Pose-aligned votes and Algorithm 1 in every window, by the fastest implementation that fits.

    .. math::
        \bar p = M(p_1, \dots, p_n, 1), \qquad v_{ij} = p_i \circ t_{ij}(\bar p^{-1} x_i), \qquad
        \hat p_j, \hat a_j = \mathrm{route}(v_{:j}, a)

    The choice depends only on what the group and σ declare in their class attribute ``closed_form``, and on whether
    the program is being traced or compiled. From top to bottom, the first line that fits is taken:

    ================ ============= =================== ======================================================
    group            σ             program             implementation
    ================ ============= =================== ======================================================
    "unit complex"   "sigmoid"     eager, where        :func:`fused_route`, a compiled kernel: votes never leave
                                   fused_route_fits    the cache, and windows without activity are skipped
    "unit complex"   "sigmoid"     eager               :func:`planar_route`: the same in torch
    "unit complex"   "linear"      any                 :func:`moment_route`: one sweep over the votes,
                                                       whatever the number of iterations
    any              any           any                 :func:`route`: Algorithm 1 as it is written
    ================ ============= =================== ======================================================

    Programs that are being traced or compiled (``torch.export``, ``torch.compile``) take the plain one in place of
    :func:`planar_route`, whose sizes depend on the data: the number of active windows and, with it, of the pieces in
    which they are routed. A further implementation gets a line in this table and a branch below it.

    All of them agree up to rounding, values and gradients (a test), with two exceptions in the gradient: at an
    activation of exactly 0, see :func:`planar_route`; and in a window without any activity, where the pose is undefined
    and :func:`planar_route` passes no gradient.

    Args:
        group: the group of the poses; it must act on the plane (``point_dim == 2``).
        generator: t.
        capsules: the input, on a grid that the windows cover from edge to edge.
        kernel_size: the side of the square windows.
        stride: the stride of the windows.
        iterations: see :func:`route`.
        sigma: see :func:`route`.
        agreement: see :func:`route`.

    Returns:
        The capsules on the grid of windows.
    """
    _check(group, generator, capsules)
    check_window_grid("route_windows", (capsules.poses.shape[2], capsules.poses.shape[3]), kernel_size, stride)
    check_options("route_windows", iterations, sigma, agreement)
    forms = (group.closed_form, sigma.closed_form)
    if forms == ("unit complex", "sigmoid") and not torch.compiler.is_compiling():
        active = active_windows(capsules, kernel_size, stride)
        features = _planar_features(group, generator, active.poses, kernel_size)
        given = (features, generator.weight, active.poses, active.activations)
        if fused_route_fits(features, generator.weight, iterations, agreement):
            planar = fused_route(*given, iterations=iterations, sigma=sigma, floor=group.floor)
        else:
            planar = planar_route(*given, iterations=iterations, sigma=sigma, agreement=agreement, floor=group.floor)
        return on_grid(*planar, active)
    votes = window_votes(group, generator, capsules.poses, kernel_size=kernel_size, stride=stride)
    inputs = window_activations(capsules.activations, kernel_size=kernel_size, stride=stride)
    routing: MomentRouting | Routing
    if forms == ("unit complex", "linear"):
        routing = moment_route(votes, inputs, iterations=iterations, agreement=agreement, floor=group.floor)
    else:
        routing = route(group, votes, inputs, iterations=iterations, sigma=sigma, agreement=agreement)
    return Capsules(routing.poses.movedim(3, 1), routing.activations.movedim(3, 1))


@full_precision
def window_votes(
    group: Group,
    generator: Transformations,
    poses: Float[Tensor, "b c h w d"],
    *,
    kernel_size: int = 2,
    stride: int = 2,
) -> Float[Tensor, "b y x m n d"]:
    """The votes of every window, its n = c·k inputs sorted by capsule, then by position in reading order."""
    check_window_grid("window_votes", (poses.shape[2], poses.shape[3]), kernel_size, stride)
    inputs = windows(poses.movedim(-1, 1), kernel_size, stride).permute(0, 3, 4, 2, 5, 1)  # (b, y, x, c, k, d)
    mean = mean_pose(group, inputs if generator.per_capsule else inputs.flatten(-3, -2))
    t = generator(_aligned(group, generator, mean, kernel_size)).movedim(3, -2)  # (b, y, x, m, c, k, d)
    return group.compose(inputs.unsqueeze(3), t).flatten(-3, -2)


def window_activations(
    activations: Float[Tensor, "b c h w"], *, kernel_size: int = 2, stride: int = 2
) -> Float[Tensor, "b y x n"]:
    """The activations of every window's inputs, in the order of :func:`window_votes`."""
    return windows(activations, kernel_size, stride).movedim(1, 3).flatten(-2)


def _aligned(
    group: Group, generator: Transformations, mean: Float[Tensor, "*batch d"], kernel_size: int
) -> Float[Tensor, "*windows k i"]:
    """The generator's input: positions under the mean pose of the window, or under that of each of its capsules."""
    positions = window_positions(kernel_size, dtype=mean.dtype, device=mean.device)
    aligned = align(group, mean, positions)
    return aligned.transpose(-3, -2).flatten(-2) if generator.per_capsule else aligned


@full_precision
def _planar_features(
    group: Group, generator: Transformations, poses: Float[Tensor, "2 c k windows"], kernel_size: int
) -> Float[Tensor, "f k windows"]:
    mean = planar_mean_pose(poses, together=not generator.per_capsule, floor=group.floor).movedim(-2, 0)
    return generator.features(_aligned(group, generator, mean, kernel_size)).permute(2, 1, 0).contiguous()


def _check(group: Group, generator: Transformations, capsules: Capsules) -> None:
    where, (poses, activations), c, d = "route_windows", capsules, generator.weight.shape[2], group.dim
    check_floating(where, "poses", poses)
    check_floating(where, "activations", activations)
    check_alike(where, {"poses": poses, "activations": activations, "the generator's weight": generator.weight})
    if poses.ndim != 5 or poses.shape[1] != c or poses.shape[-1] != d:
        raise ValueError(
            f"{where}: `poses` must have shape (batch, {c}, height, width, {d}) for {c} input capsules on {group!r}, "
            f"but has shape {tuple(poses.shape)}."
        )
    if activations.shape != poses.shape[:-1]:
        raise ValueError(
            f"{where}: `activations` must have shape {tuple(poses.shape[:-1])}, one for each pose, "
            f"but has shape {tuple(activations.shape)}."
        )
