"""Kernels ψ of the sparse group convolution, whose coefficients :class:`equicaps.nn.PoseConv2d` trains."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_count
from equicaps.functional.sparse_convolution import (
    harmonic_convolution,
    harmonic_window,
    rings,
    spline_convolution,
    spline_window,
)


@dataclass(frozen=True)
class PoseKernel(ABC):
    """A family of functions on the plane that are linear in their coefficients."""

    @abstractmethod
    def shape(self, kernel_size: int) -> tuple[int, ...]:
        """The shape of the coefficients of one function."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """The approximate standard deviation of a function's value for coefficients of standard deviation 1."""

    @abstractmethod
    def convolve(
        self,
        features: Float[Tensor, "b c h w"],
        poses: Float[Tensor, "b m y x 2"],
        weight: Float[Tensor, "m c ..."],
        kernel_size: int,
        stride: int,
        active: Bool[Tensor, "b y x"] | None = None,
    ) -> Float[Tensor, "b m y x"]:
        """The sparse group convolution with these functions, one for each pair of channels.

        Values outside of ``active`` windows do not matter.
        """

    @abstractmethod
    def window(self, weight: Float[Tensor, "m c ..."], kernel_size: int) -> Float[Tensor, "m c k k"]:
        """The values of the functions at the positions of a window that is not rotated."""


@dataclass(frozen=True)
class SplineKernel(PoseKernel):
    """The paper's choice: a tensor product of B-splines over the disc of the rotated window (Fey et al., 2018).

    Args:
        degree: 1, 2 or 3.
        size: the number of control points along each axis.
    """

    degree: int = 1
    size: int = 5

    def __post_init__(self) -> None:
        check_count("SplineKernel", "size", self.size)
        if self.degree not in (1, 2, 3):
            raise ValueError(f"SplineKernel: `degree` must be 1, 2 or 3, but is {self.degree!r}.")
        if self.size <= self.degree:
            raise ValueError(f"SplineKernel: `size` must exceed the degree {self.degree}, but is {self.size}.")

    def shape(self, kernel_size: int) -> tuple[int, ...]:
        """The numbers of control points along x and y, whatever the size of the window."""
        return (self.size, self.size)

    @property
    def gain(self) -> float:
        """The root of Σ_k B_k², averaged between knots."""
        return {1: 2 / 3, 2: 11 / 20, 3: 151 / 315}[self.degree]

    def convolve(
        self,
        features: Float[Tensor, "b c h w"],
        poses: Float[Tensor, "b m y x 2"],
        weight: Float[Tensor, "m c s s"],
        kernel_size: int,
        stride: int,
        active: Bool[Tensor, "b y x"] | None = None,
    ) -> Float[Tensor, "b m y x"]:
        """See :func:`equicaps.functional.spline_convolution`."""
        return spline_convolution(
            features, poses, weight, degree=self.degree, kernel_size=kernel_size, stride=stride, active=active
        )

    def window(self, weight: Float[Tensor, "m c s s"], kernel_size: int) -> Float[Tensor, "m c k k"]:
        """See :func:`equicaps.functional.spline_window`."""
        return spline_window(weight, degree=self.degree, kernel_size=kernel_size)


@dataclass(frozen=True)
class HarmonicKernel(PoseKernel):
    """A Fourier series in the angle on every ring of the window (ours).

    Args:
        order: the highest frequency M.
    """

    order: int = 2

    def __post_init__(self) -> None:
        check_count("HarmonicKernel", "order", self.order)

    def shape(self, kernel_size: int) -> tuple[int, ...]:
        """2M + 1 real coefficients for every ring; at the centre of an odd window only the first counts."""
        return (2 * self.order + 1, len(rings(kernel_size)))

    @property
    def gain(self) -> float:
        r"""The root of :math:`\sum_m |e^{imθ}|^2`."""
        return math.sqrt(1 + self.order)

    def convolve(
        self,
        features: Float[Tensor, "b c h w"],
        poses: Float[Tensor, "b m y x 2"],
        weight: Float[Tensor, "m c q r"],
        kernel_size: int,
        stride: int,
        active: Bool[Tensor, "b y x"] | None = None,
    ) -> Float[Tensor, "b m y x"]:
        """See :func:`equicaps.functional.harmonic_convolution`, which takes the same time for every window."""
        return harmonic_convolution(features, poses, weight, kernel_size=kernel_size, stride=stride)

    def window(self, weight: Float[Tensor, "m c q r"], kernel_size: int) -> Float[Tensor, "m c k k"]:
        """See :func:`equicaps.functional.harmonic_window`."""
        return harmonic_window(weight, kernel_size=kernel_size)
