"""The first poses of a network: image gradients (Section 6.1)."""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from equicaps.functional.capsules import Capsules
from equicaps.numerics import FAINT_GRADIENT, safe_normalize

GradientMethod = Literal["sobel", "gaussian"]


class Taps(NamedTuple):
    """Half of a separable derivative filter; the other half follows from (anti)symmetry."""

    derivative: tuple[float, ...]
    """Weights of f(x + k) - f(x - k) for k = 1, 2, ..."""
    smoothing: tuple[float, ...]
    """Weights of f(y), then of f(y + k) + f(y - k) for k = 1, 2, ..."""


def gradient_taps(method: GradientMethod = "sobel", sigma: float = 1.0) -> Taps:
    """Sobel's 1-2-1 operator, or the derivative of a Gaussian cut off at 3σ; both give 1 on a ramp of slope 1."""
    if method not in get_args(GradientMethod):
        raise ValueError(f"ImagePoses: `method` must be one of {get_args(GradientMethod)}, but is {method!r}.")
    if not (isinstance(sigma, int | float) and 0 < sigma < math.inf):
        raise ValueError(f"ImagePoses: `sigma` must be a positive number of pixels, but is {sigma!r}.")
    if method == "sobel":
        return Taps((0.5,), (0.5, 0.25))
    bell = [math.exp(-0.5 * (k / sigma) ** 2) for k in range(math.ceil(3 * sigma) + 1)]
    slope = [k * value for k, value in enumerate(bell)][1:]
    ramp = 2 * sum(k * value for k, value in enumerate(slope, start=1))
    area = bell[0] + 2 * sum(bell[1:])
    return Taps(tuple(value / ramp for value in slope), tuple(value / area for value in bell))


def image_poses(images: Float[Tensor, "batch channels height width"], taps: Taps) -> Capsules:
    r"""One SO(2) capsule for every pixel and channel: the direction and the length of the gradient (Section 6.1).

    When the images are rotated by a quarter turn, the grid and every pose on it rotate with them, to the bit: the
    filters combine mirrored pixels before they add anything else. Borders repeat the outermost pixel, so a constant
    image has no gradient anywhere. A zero gradient gives the undefined pose, activation 0 and finite derivatives; a
    gradient whose length is near the floor (1e-5, for images in [0, 1]) gives a shorter pose.

    Args:
        images: row 0 is the top; poses have x right and y up.
        taps: see :func:`gradient_taps`.
    """
    reach = max(len(taps.derivative), len(taps.smoothing) - 1)
    padded = F.pad(images, (reach,) * 4, mode="replicate")
    x = _smooth(_differentiate(padded, taps.derivative, reach, -1), taps.smoothing, reach, -2)
    y = -_smooth(_differentiate(padded, taps.derivative, reach, -2), taps.smoothing, reach, -1)
    gradient = torch.stack((x, y), dim=1).movedim(1, -1)
    poses = safe_normalize(gradient, gradient.new_full((1,), FAINT_GRADIENT))
    return Capsules(poses, (gradient * poses).sum(-1))


def _differentiate(images: Tensor, weights: Sequence[float], reach: int, axis: int) -> Tensor:
    size = images.shape[axis] - 2 * reach
    pairs = [
        weight * (images.narrow(axis, reach + k, size) - images.narrow(axis, reach - k, size))
        for k, weight in enumerate(weights, start=1)
    ]
    return sum(pairs[1:], pairs[0])


def _smooth(images: Tensor, weights: Sequence[float], reach: int, axis: int) -> Tensor:
    size = images.shape[axis] - 2 * reach
    result = weights[0] * images.narrow(axis, reach, size)
    for k, weight in enumerate(weights[1:], start=1):
        result = result + weight * (images.narrow(axis, reach + k, size) + images.narrow(axis, reach - k, size))
    return result
