"""Steerable capsules on images."""

import math
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_alike, check_choice, check_count, check_floating, check_window_grid
from equicaps.functional import Capsules
from equicaps.functional.steerable import (
    Mirror,
    agreed_poses,
    convolve,
    features_at,
    low_pass,
    moments,
    steerable_basis,
    vote_strength,
)
from equicaps.groups import SO2
from equicaps.nn.batch_norm import BatchNorm2d
from equicaps.numerics import FAINT_RESPONSE, NO_EVIDENCE, at_least, safe_reciprocal


class SteerableCapsules2d(nn.Module):
    r"""Pose by agreement and group convolution at that pose, in one real convolution.

    The moments :math:`X_{cn} = f_c p_c^n` of the input, n up to N, are convolved with kernels
    :math:`\kappa(|u|) e^{i(m-n)\theta_u}` to responses :math:`Y_{jm}`, m up to M. Then
    :math:`p_j = Y_{j1} / |Y_{j1}|` and :math:`f_j = \mathrm{norm}(\sum_m \mathrm{Re}(p_j^{-m} Y_{jm}))`.

    When the input capsules (maps and poses) are rotated by a quarter turn, poses rotate with them, and activations only
    move with the grid: exactly, whatever M, N and the rings are, on grids that a quarter turn maps onto themselves
    (``(size + 2 * padding - kernel_size) % stride == 0``). At other angles this holds up to resampling. With
    ``mirror="ignore"`` κ is real, and the same holds for mirroring, which takes a pose (x, y) to (-x, y).

    Args:
        in_capsules: the number of input capsules, or of image channels when ``in_order`` is 0.
        out_capsules: the number of output capsules.
        kernel_size: the side of the square windows.
        stride: the stride of the windows.
        in_order: N; with 0, poses are not read.
        out_order: M, at least 1.
        pool: whether to halve the resolution of the moments with a low-pass filter first.
        padding: the width of the border, zeros around moments and repeated pixels around images; by default
            (kernel_size - 1) // 2.
        needs_pose: whether activations vanish where the pose is undefined. It is undefined at the centre of anything
            that looks the same after half a turn; without this, its capsule keeps :math:`Y_{j0}`, which needs no pose.
        mirror: whether mirroring may change activations (``"distinguish"``) or not (``"ignore"``, about half as many
            weights).
    """

    pose_power: Tensor
    basis: Tensor

    def __init__(
        self,
        in_capsules: int,
        out_capsules: int,
        kernel_size: int,
        *,
        stride: int = 1,
        in_order: int = 1,
        out_order: int = 2,
        pool: bool = False,
        padding: int | None = None,
        needs_pose: bool = True,
        mirror: Mirror = "distinguish",
    ) -> None:
        super().__init__()
        check_choice("mirror", mirror, get_args(Mirror))
        for name in ("in_capsules", "out_capsules", "kernel_size", "stride", "out_order"):
            check_count("SteerableCapsules2d", name, locals()[name])
        padding = (kernel_size - 1) // 2 if padding is None else padding
        for name, value in (("in_order", in_order), ("padding", padding)):
            if not isinstance(value, int) or value < 0:
                raise ValueError(f"SteerableCapsules2d: `{name}` must be a whole number, 0 or more, but is {value!r}.")
        self.in_capsules, self.out_capsules = in_capsules, out_capsules
        self.kernel_size, self.stride = kernel_size, stride
        self.in_order, self.out_order, self.pool = in_order, out_order, pool
        self.padding, self.needs_pose, self.mirror = padding, needs_pose, mirror
        with torch.device("cpu"):  # how many kernels there are depends on their values
            basis = steerable_basis(kernel_size, in_order, out_order, mirror)
        basis = basis.to(torch.get_default_device(), torch.get_default_dtype())
        self.register_buffer("basis", basis, persistent=False)
        self.weight = nn.Parameter(torch.empty(out_capsules, in_capsules, len(basis)))
        self.norm = BatchNorm2d(out_capsules)
        self.register_buffer("pose_power", torch.ones(out_capsules))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights that give responses about the size of the moments, and reset the running statistics."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.in_capsules * len(self.basis) / (2 * self.out_order + 1)))
        self.norm.reset_parameters()
        self.pose_power.fill_(1.0)

    @property
    def kernel(self) -> Float[Tensor, "rows columns k k"]:
        """The real convolution kernel, from moments to responses, with capsules innermost."""
        size = self.kernel_size
        kernel = torch.einsum("jcp,pabk->ajbck", self.weight, self.basis.flatten(3))
        return kernel.flatten(0, 1).flatten(1, 2).unflatten(-1, (size, size))

    def forward(self, capsules: Capsules, at: Float[Tensor, "batch out h w 2"] | None = None) -> Capsules:
        """Poses by agreement, and activations by group convolution at these poses.

        Activations are normalised but not rectified, and with ``needs_pose`` they are 0 where the pose is undefined.

        Args:
            capsules: the input.
            at: evaluate the group convolution at these poses instead; with the identity everywhere it is an ordinary
                convolution.
        """
        self._check(capsules)
        responses = self._convolve(self._maps(capsules), self.kernel)
        at = self._poses(self._first(responses)) if at is None else self._given(at, responses)
        return Capsules(at, self._features(at, responses))

    def vote(self, capsules: Capsules) -> Capsules:
        r"""Poses by agreement, and activations that say how far the votes agree.

        :math:`|Y_{j1}| / \sum |\kappa_{jc1n}(u)| f_c \in [0, 1]`, the resultant length of the weighted votes; 0 where
        the pose is undefined.
        """
        self._check(capsules)
        rows = self._first(self.kernel.unsqueeze(0)).squeeze(0)
        first = self._convolve(self._maps(capsules), rows)
        poses = self._poses(first)
        return Capsules(poses, self._agreement(capsules, rows, first) * SO2().presence(poses))

    def vote_and_convolve(
        self, capsules: Capsules, at: Float[Tensor, "batch out h w 2"] | None = None
    ) -> tuple[Capsules, Float[Tensor, "batch out h w"]]:
        """Both results of a class layer: :meth:`vote`, and the activations of :meth:`forward`."""
        self._check(capsules)
        kernel = self.kernel
        responses = self._convolve(self._maps(capsules), kernel)
        first = self._first(responses)
        poses = self._poses(first)
        agreement = self._agreement(capsules, self._first(kernel.unsqueeze(0)).squeeze(0), first)
        features = self._features(poses if at is None else self._given(at, responses), responses)
        return Capsules(poses, agreement * SO2().presence(poses)), features

    def _first(self, responses: Tensor) -> Tensor:
        """The rows of Y_1."""
        return responses[:, self.out_capsules : 3 * self.out_capsules]

    def _features(self, at: Tensor, responses: Tensor) -> Float[Tensor, "batch out h w"]:
        features: Tensor = self.norm(features_at(at, responses))
        return features * _presence(at) if self.needs_pose else features

    def _agreement(self, capsules: Capsules, rows: Tensor, first: Tensor) -> Float[Tensor, "batch out h w"]:
        out = self.out_capsules
        strength = vote_strength(rows.unflatten(0, (2, out)).unflatten(2, (-1, self.in_capsules)))
        total = self._convolve(self._pooled(capsules.activations.abs()), strength)
        length = torch.linalg.vector_norm(first.unflatten(1, (2, out)), dim=1)
        return length * safe_reciprocal(total, NO_EVIDENCE)

    def _maps(self, capsules: Capsules) -> Float[Tensor, "batch columns height width"]:
        return self._pooled(moments(capsules, self.in_order))

    def _pooled(self, maps: Tensor) -> Tensor:
        return low_pass(maps, edges=not self._reads_images) if self.pool else maps

    @property
    def _reads_images(self) -> bool:
        """Whether the input is an image, which goes on beyond its border, unlike moments, which are zero there."""
        return self.in_order == 0

    def _convolve(self, maps: Tensor, kernel: Tensor) -> Float[Tensor, "batch rows height width"]:
        padding = self.padding
        if self._reads_images and padding:
            maps, padding = F.pad(maps, (padding,) * 4, mode="replicate"), 0
        responses = convolve(maps, kernel, self.stride, padding)
        return responses.to(maps.dtype)  # autocast may lower the precision of products, but not of what follows

    def _poses(self, first: Float[Tensor, "batch rows height width"]) -> Float[Tensor, "batch out height width 2"]:
        faint = at_least(FAINT_RESPONSE * self.pose_power.sqrt(), NO_EVIDENCE)
        if self.training:
            self._follow(first)
        return agreed_poses(first, faint)

    @torch.no_grad()
    def _follow(self, first: Float[Tensor, "batch rows height width"]) -> None:
        """Update the running power, linearly in the batch, so that processes can average it along with gradients."""
        power = first.unflatten(1, (2, -1)).square().sum(1).mean((0, 2, 3))
        self.pose_power.lerp_(power.to(self.pose_power), self.norm.momentum or 0.1)  # autocast may have lowered it

    def _given(self, at: Tensor, responses: Tensor) -> Tensor:
        expected = (responses.shape[0], self.out_capsules, *responses.shape[-2:], 2)
        if at.shape != expected:
            raise ValueError(
                f"SteerableCapsules2d: `at` must have shape {expected}, one pose for each output capsule and position, "
                f"but has shape {tuple(at.shape)}."
            )
        return at

    def _check(self, capsules: Capsules) -> None:
        where, c, (poses, activations) = "SteerableCapsules2d", self.in_capsules, capsules
        check_floating(where, "activations", activations)
        check_alike(where, {"activations": activations, "poses": poses, "the layer's parameters": self.weight})
        if activations.ndim != 4 or activations.shape[1] != c:
            raise ValueError(
                f"{where}: `activations` must have shape (batch, {c}, height, width) for {c} input capsules, but has "
                f"shape {tuple(activations.shape)}."
            )
        if poses.shape != (*activations.shape, 2):
            raise ValueError(
                f"{where}: `poses` must have shape {(*activations.shape, 2)}, one for each activation, but has shape "
                f"{tuple(poses.shape)}."
            )
        sides = activations.shape[-2:]
        if self.pool and any(side % 2 for side in sides):
            raise ValueError(
                f"{where}: the low-pass filter halves the grid, so both sides must be even, but are {tuple(sides)}."
            )
        height, width = (side // (1 + self.pool) + 2 * self.padding for side in sides)
        changed = f" (on a grid {'halved and ' * self.pool}padded by {self.padding})"
        check_window_grid(where + changed, (height, width), self.kernel_size, self.stride)

    def extra_repr(self) -> str:
        """The mathematical signature."""
        orders = f"orders {self.in_order} -> {self.out_order}"
        pooled = ", low-pass 2" if self.pool else ""
        alone = "" if self.needs_pose else ", also without a pose"
        mirrored = ", mirror images alike" if self.mirror == "ignore" else ""
        return (
            f"{self.in_capsules} -> {self.out_capsules} capsules on SO(2), {orders}, "
            f"{self.kernel_size}x{self.kernel_size} stride {self.stride}{pooled}{alone}{mirrored}"
        )


def _presence(poses: Float[Tensor, "batch out h w 2"]) -> Float[Tensor, "batch out h w"]:
    """|p|², coordinates first: cheaper than :meth:`SO2.presence`, and 0 where it is 0."""
    return poses.movedim(-1, 1).square().sum(1)
