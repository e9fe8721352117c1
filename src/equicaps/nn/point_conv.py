"""Sparse group convolution on points, evaluated at the poses of capsules (Section 4)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_count, check_floating, check_positive
from equicaps.functional.point_convolution import MONOMIALS, RINGS, point_convolution
from equicaps.functional.point_frames import PointPoses
from equicaps.functional.point_routing import nearest_neighbours
from equicaps.nn.batch_norm import BatchNorm2d


class PointConv(nn.Module):
    r"""The group convolution of features on a cloud, evaluated at one pose for each output capsule (Theorem 3).

    .. math:: \mathrm{out}_{jq}(x) = a_j(x) \sum_u w_u \sum_c f_c(x + u)\, ψ_{jqc}(p_j(x)^{-1} u)

    with smooth kernels ψ, see :func:`equicaps.functional.point_convolution`. When cloud and poses are rotated together,
    the output does not change: exact up to rounding for every rotation, whatever the parameters.

    Args:
        in_channels: the number of input features.
        capsules: the number of output capsules.
        channels: q, the number of kernels, and so of output features, for each capsule.
        radius: the largest distance of a neighbour.
        neighbours: their largest number; see :func:`equicaps.functional.point_routing.nearest_neighbours`.
        norm: whether the output is normalised over the active centres of the batch in training, before it is weighted
            by activations.
    """

    def __init__(
        self,
        in_channels: int,
        capsules: int,
        channels: int = 1,
        *,
        radius: float,
        neighbours: int = 16,
        norm: bool = False,
    ) -> None:
        super().__init__()
        sizes = {"in_channels": in_channels, "capsules": capsules, "channels": channels, "neighbours": neighbours}
        for name, value in sizes.items():
            check_count("PointConv", name, value)
        check_positive("PointConv", "radius", radius)
        self.in_channels = in_channels
        self.capsules = capsules
        self.channels = channels
        self.radius = radius
        self.neighbours = neighbours
        self.weight = nn.Parameter(torch.empty(capsules, channels, in_channels, len(RINGS), MONOMIALS))
        self.bias = None if norm else nn.Parameter(torch.empty(capsules, channels))
        self.norm = BatchNorm2d(capsules * channels) if norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new kernels and set the bias to zero."""
        nn.init.normal_(self.weight, std=math.sqrt(2 / (self.in_channels * len(RINGS))))
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.norm is not None:
            self.norm.reset_parameters()

    def forward(
        self,
        points: Float[Tensor, "batch n 3"],
        features: Float[Tensor, "batch n c"],
        centres: Float[Tensor, "batch i 3"],
        capsules: PointPoses,
        weights: Float[Tensor, "batch n"] | None = None,
    ) -> Float[Tensor, "batch i f"]:
        """Features of the cloud, seen from the capsules at ``centres``: f = m·q, those of one capsule together.

        Points of weight 0 are only padding. No gradient flows from centres without an active capsule.
        """
        self._check(points, features, centres, capsules)
        weights = points.new_ones(points.shape[:2]) if weights is None else weights
        near = nearest_neighbours(points, weights, centres, radius=self.radius, count=self.neighbours)
        out = point_convolution(near, features, capsules.poses, self.weight)
        active = (capsules.activations != 0).any(-1)
        if self.norm is not None:
            planes = self.norm(out.flatten(2).mT.unsqueeze(-1), active.unsqueeze(-1))
            out = planes.squeeze(-1).mT.unflatten(-1, (self.capsules, self.channels))
        else:
            assert self.bias is not None
            out = out + self.bias
        out = torch.where(active[..., None, None], out, 0)
        return (out * capsules.activations.unsqueeze(-1)).flatten(2)

    def _check(self, points: Tensor, features: Tensor, centres: Tensor, capsules: PointPoses) -> None:
        where, (poses, activations) = "PointConv", capsules
        check_floating(where, "features", features)
        check_alike(
            where,
            {
                "points": points,
                "features": features,
                "poses": poses,
                "activations": activations,
                "the layer's parameters": self.weight,
            },
        )
        if tuple(features.shape) != (*points.shape[:2], self.in_channels):
            raise ValueError(
                f"{where}: `features` must have shape {(*points.shape[:2], self.in_channels)}, "
                f"but has shape {tuple(features.shape)}."
            )
        expected = (*centres.shape[:2], self.capsules, 9)
        if tuple(poses.shape) != expected:
            raise ValueError(
                f"{where}: `poses` must have shape {expected}, one SO(3) pose for each output capsule, "
                f"but has shape {tuple(poses.shape)}."
            )

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_channels} -> {self.capsules} capsules x {self.channels}, radius={self.radius}, "
            f"neighbours={self.neighbours}{', norm=True' if self.norm else ''}"
        )
