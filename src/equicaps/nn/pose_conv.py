"""Sparse group convolution (Section 4)."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_count, check_floating, check_window_grid
from equicaps.nn.batch_norm import BatchNorm2d
from equicaps.nn.kernels import PoseKernel, SplineKernel

_PAPER = SplineKernel()


class PoseConv2d(nn.Module):
    r"""Convolution that rotates every window by the pose of its output capsule (Section 4, Theorem 3).

    .. math:: \mathrm{out}_j(x) = b_j + \sum_u \sum_c f_c(x + u)\, ψ_{jc}(p_j(x)^{-1} u)

    When features and poses are rotated together by a quarter turn, the output moves with the grid and does not change
    otherwise, up to rounding, whatever the kernel. With ``stride=2`` it pairs with :class:`SpatialCapsules2d` on 2x2
    blocks: ``kernel_size=2`` sees the block of each capsule, ``kernel_size=4, padding=1`` one pixel more on each side.

    Args:
        in_channels: the number of input feature maps.
        out_channels: the number of output feature maps, one for each capsule.
        kernel_size: the side of the square windows.
        stride: the stride of the windows, which must reach from edge to edge.
        padding: the width of the border of zeros around the features.
        kernel: the family of ψ: :class:`SplineKernel` (paper) or :class:`HarmonicKernel`.
        norm: whether the output is normalised over the active windows of the batch in training, before it is weighted
            by activations. In eval mode that is part of kernel and bias, so it costs nothing there.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int = 3,
        stride: int = 1,
        padding: int = 0,
        *,
        kernel: PoseKernel = _PAPER,
        norm: bool = False,
    ) -> None:
        super().__init__()
        counts = {
            "in_channels": in_channels,
            "out_channels": out_channels,
            "kernel_size": kernel_size,
            "stride": stride,
        }
        for name, value in counts.items():
            check_count("PoseConv2d", name, value)
        if not isinstance(padding, int) or padding < 0:
            raise ValueError(f"PoseConv2d: `padding` must be 0, 1, 2, ..., but is {padding!r}.")
        if not isinstance(kernel, PoseKernel):
            raise TypeError(
                f"PoseConv2d: `kernel` must be SplineKernel(...) or HarmonicKernel(...), but is {kernel!r}."
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.kernel = kernel
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, *kernel.shape(kernel_size)))
        self.bias = None if norm else nn.Parameter(torch.empty(out_channels))
        self.norm = BatchNorm2d(out_channels) if norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new kernels whose values have the right variance for a ReLU, and set the bias to zero."""
        fan_in = self.in_channels * self.kernel_size**2
        nn.init.normal_(self.weight, std=math.sqrt(2 / fan_in) / self.kernel.gain)
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if self.norm is not None:
            self.norm.reset_parameters()

    def forward(
        self,
        features: Float[Tensor, "b c h w"],
        poses: Float[Tensor, "b m y x 2"],
        activations: Float[Tensor, "b m y x"] | None = None,
    ) -> Float[Tensor, "b m y x"]:
        """Feature maps, seen from the poses of the output capsules (a zero vector is the undefined pose).

        With ``activations`` they are weighted by them (Section 4), and windows in which no capsule is active are
        skipped. No gradient flows from there.
        """
        self._check(features, poses)
        if activations is not None:
            check_alike("PoseConv2d", {"poses": poses, "activations": activations})
            if activations.shape != poses.shape[:-1]:
                raise ValueError(
                    f"PoseConv2d: `activations` must have shape {tuple(poses.shape[:-1])}, one for each pose, but has "
                    f"shape {tuple(activations.shape)}."
                )
        padded = F.pad(features, (self.padding,) * 4)
        active = None if activations is None else (activations != 0).any(1)
        weight, bias = self._folded()
        out = self.kernel.convolve(padded, poses, weight, self.kernel_size, self.stride, active)
        if activations is None or active is None:
            return self._normalised(out, bias)
        # What is not active has no values: it must reach neither the batch statistics nor the output.
        out = self._normalised(torch.where(active.unsqueeze(1), out, 0), bias, active)
        return torch.where(active.unsqueeze(1), out, 0) * activations

    def upright(self, features: Float[Tensor, "b c h w"]) -> Float[Tensor, "b m y x"]:
        """The same at the identity for every capsule: an ordinary convolution, for networks without poses."""
        weight, bias = self._folded()
        window = self.kernel.window(weight, self.kernel_size)
        return self._normalised(F.conv2d(features, window, None, self.stride, self.padding), bias)

    def _folded(self) -> tuple[Tensor, Tensor | None]:
        """Kernel and bias, with the normalisation of eval mode; no bias while batches are normalised."""
        if self.norm is None:
            return self.weight, self.bias
        if self.norm.training:
            return self.weight, None
        mean, variance = self.norm.running_mean, self.norm.running_var
        assert mean is not None
        assert variance is not None
        scale = self.norm.weight * (variance + self.norm.eps).rsqrt()
        return self.weight * scale[:, None, None, None], self.norm.bias - mean * scale

    def _normalised(
        self, out: Float[Tensor, "b m y x"], bias: Tensor | None, active: Bool[Tensor, "b y x"] | None = None
    ) -> Float[Tensor, "b m y x"]:
        if bias is not None:
            return out + bias[:, None, None]
        assert self.norm is not None
        normalised: Tensor = self.norm(out, active)
        return normalised

    def _check(self, features: Tensor, poses: Tensor) -> None:
        where = "PoseConv2d"
        check_floating(where, "features", features)
        check_floating(where, "poses", poses)
        check_alike(where, {"features": features, "poses": poses, "the layer's parameters": self.weight})
        if features.ndim != 4 or features.shape[1] != self.in_channels:
            raise ValueError(
                f"{where}: `features` must have shape (batch, {self.in_channels}, height, width), "
                f"but has shape {tuple(features.shape)}."
            )
        height, width = (size + 2 * self.padding for size in features.shape[2:])
        check_window_grid(where, (height, width), self.kernel_size, self.stride)
        grid = tuple((size - self.kernel_size) // self.stride + 1 for size in (height, width))
        expected = (features.shape[0], self.out_channels, *grid, 2)
        if tuple(poses.shape) != expected:
            raise ValueError(
                f"{where}: `poses` must have shape {expected}, one SO(2) pose for each output, "
                f"but has shape {tuple(poses.shape)}."
            )

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_channels} -> {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"padding={self.padding}, kernel={self.kernel!r}{', norm=True' if self.norm else ''}"
        )
