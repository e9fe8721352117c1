r"""Steerable capsules: the paper's two halves, routing and group convolution, in one ordinary convolution.

A capsule is a feature :math:`f_c \ge 0` at a pose :math:`p_c`, a unit complex number. Its moments
:math:`X_{cn} = f_c p_c^n` are multiplied by :math:`e^{in\varphi}` when the image is rotated by φ. With any weights κ,

.. math:: Y_{jm}(x) = \sum_{c,n,u} \kappa_{jcmn}(|u|)\, e^{i(m-n)\theta_u}\, X_{cn}(x + u)

is then multiplied by :math:`e^{im\varphi}`. ``docs/steerable.md`` has the derivation, and says why truncating the
series costs no exactness.
"""

import math
from typing import Literal

import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch.nn import functional as F

from equicaps.functional.capsules import Capsules
from equicaps.numerics import VANISHING_KERNEL, saturating_inverse

Mirror = Literal["distinguish", "ignore"]
"""Whether an object and its mirror image may get different features, or always get the same."""


def moments(capsules: Capsules, order: int) -> Float[Tensor, "batch channels height width"]:
    """The real maps of X_n = f pⁿ for n = 0..order: f, then both parts of each power, capsules innermost."""
    poses, features = capsules
    if order == 0:
        return features
    p = poses.movedim(-1, 1)
    maps, power = [features], features.unsqueeze(1)
    for n in range(1, order + 1):
        power = power * p if n == 1 else _complex_product(power, p)
        maps.append(power.flatten(1, 2))
    return torch.cat(maps, dim=1)


def low_pass(
    maps: Float[Tensor, "batch channels height width"], *, edges: bool = True
) -> Float[Tensor, "batch channels h w"]:
    """Halve the resolution after the binomial filter 1-3-3-1 along both axes; exact under quarter turns on even sizes.

    With ``edges``, maps are zero outside the grid; without, their border is repeated.
    """
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0], dtype=maps.dtype, device=maps.device) / 8
    channels, kernel = maps.shape[1], torch.outer(taps, taps)
    if not edges:
        maps = F.pad(maps, (1, 1, 1, 1), mode="replicate")
    return F.conv2d(maps, kernel.expand(channels, 1, 4, 4), stride=2, padding=int(edges), groups=channels)


def convolve(
    maps: Float[Tensor, "batch columns height width"],
    kernel: Float[Tensor, "rows columns k k"],
    stride: int,
    padding: int,
) -> Float[Tensor, "batch rows h w"]:
    """``conv2d`` in its fastest form: a matrix product for a single window, and channels last on CPUs."""
    if padding == 0 and maps.shape[-2:] == kernel.shape[-2:]:
        return F.linear(maps.flatten(1), kernel.flatten(1))[..., None, None]
    if maps.device.type != "cpu" or torch.compiler.is_compiling():
        return F.conv2d(maps, kernel, stride=stride, padding=padding)
    return F.conv2d(_channels_last(maps), _channels_last(kernel), stride=stride, padding=padding).contiguous()


def _channels_last(maps: Float[Tensor, "n c h w"]) -> Float[Tensor, "n c h w"]:
    """The same values with channels last in memory; not by ``memory_format``, which ``torch.func.vmap`` refuses."""
    return maps.movedim(1, -1).contiguous().movedim(-1, 1)


def steerable_basis(
    kernel_size: int, in_order: int, out_order: int, mirror: Mirror = "distinguish"
) -> Float[Tensor, "p rows columns k k"]:
    r"""All real kernels that map moments of order up to N to responses of order up to M.

    There is one for each ring r, each pair (m, n) with m ≥ 0 and each part of κ, real and imaginary, without those that
    vanish on the grid or repeat another. With ``mirror="ignore"`` κ is real: if the window is mirrored about the x axis
    and the moments are conjugated, so are the responses.

    Rows are :math:`\mathrm{Re}\,Y_0, \mathrm{Re}\,Y_1, \mathrm{Im}\,Y_1, \dots`;
    columns :math:`X_0, \mathrm{Re}\,X_1, \mathrm{Im}\,X_1, \dots`, where :math:`X_{-n} = \overline{X_n}`.
    """
    half = (kernel_size - 1) / 2
    offsets = torch.arange(kernel_size, dtype=torch.float64) - half
    x, y = offsets.expand(kernel_size, -1), -offsets.unsqueeze(1).expand(-1, kernel_size)  # y up
    radius, angle = torch.hypot(x, y), torch.atan2(y, x)
    start = 0.0 if kernel_size % 2 else 0.7
    kernels = []
    for m in range(out_order + 1):
        for n in range(0 if m == 0 else -in_order, in_order + 1):
            for ring in range((kernel_size + 1) // 2):
                profile = _ring(radius, start + ring, m - n)
                phase = torch.polar(profile, (m - n) * angle)
                for kappa in (1,) if mirror == "ignore" else (1, 1j):
                    kernel = _real_kernel(kappa * phase, m, n, in_order, out_order)
                    if kernel.abs().max() > VANISHING_KERNEL:
                        kernels.append(kernel)
    return torch.stack(kernels)


def _ring(radius: Float[Tensor, "k k"], centre: float, frequency: int) -> Float[Tensor, "k k"]:
    """A Gaussian ring of unit energy; high angular frequencies are damped where the grid is too coarse for them."""
    profile = torch.exp(-((radius - centre) ** 2) / (2 * 0.6**2))
    if frequency:
        profile = profile * (radius * 2 / abs(frequency)).clamp(max=1) ** abs(frequency)
    energy = profile.square().sum().sqrt()
    return profile / energy if energy > VANISHING_KERNEL else torch.zeros_like(profile)


def _real_kernel(z: Complex[Tensor, "k k"], m: int, n: int, in_order: int, out_order: int) -> Tensor:
    """Multiplication of X_n by z as a real matrix at every offset, in the rows and columns that belong to m and n."""
    kernel = torch.zeros(2 * out_order + 1, 2 * in_order + 1, *z.shape, dtype=z.real.dtype)
    rows = [0] if m == 0 else [2 * m - 1, 2 * m]
    real, imaginary = z.real, z.imag
    columns = [(0, real, imaginary)]
    if n:
        sign = math.copysign(1, n)  # X_{-n} is the conjugate of X_n
        columns = [(2 * abs(n) - 1, real, imaginary), (2 * abs(n), -sign * imaginary, sign * real)]
    for column, re, im in columns:
        for row, part in zip(rows, (re, im), strict=False):
            kernel[row, column] = part
    return kernel


def agreed_poses(
    first: Float[Tensor, "batch rows height width"], floor: Float[Tensor, " capsules"]
) -> Float[Tensor, "batch capsules height width 2"]:
    r"""Pose by agreement: :math:`p_j = Y_{j1} / |Y_{j1}|`, fading below ``floor``.

    This is the first mean of Algorithm 1, of the votes :math:`p_c^n e^{i(1-n)\theta_u}` with weights κ and f.
    """
    response = first.unflatten(1, (2, -1))
    inverse = saturating_inverse(response.square().sum(1, keepdim=True), floor[:, None, None])
    return (response * inverse).movedim(1, -1)


def features_at(
    poses: Float[Tensor, "batch capsules height width 2"], responses: Float[Tensor, "batch rows height width"]
) -> Float[Tensor, "batch capsules height width"]:
    r"""The group convolution of Theorem 3 at the given poses: :math:`\sum_m \mathrm{Re}(p_j^{-m} Y_{jm})`."""
    p = power = poses.movedim(-1, 1)
    parts = responses.unflatten(1, (-1, p.shape[2]))
    zeroth, first, *higher = parts.split([1] + [2] * (parts.shape[1] // 2), dim=1)
    features = zeroth.squeeze(1) + (p * first).sum(1)
    for response in higher:
        power = _complex_product(power, p)
        features = features + (power * response).sum(1)
    return features


def vote_strength(rows: Float[Tensor, "2 out columns in k k"]) -> Float[Tensor, "out in k k"]:
    r"""The largest vote that a unit feature can cast at each offset, :math:`\sum_n |\kappa_{1n}(u)|`.

    ``rows`` are those of :math:`Y_1`. Columns a and b of :math:`X_n = a + ib` hold :math:`\kappa_n + \kappa_{-n}` and
    :math:`i(\kappa_n - \kappa_{-n})`, each with its phase.
    """
    zeroth, *higher = rows.split([1] + [2] * (rows.shape[2] // 2), dim=2)
    strength = torch.linalg.vector_norm(zeroth.squeeze(2), dim=0)
    for pair in higher:
        a, b = pair.unbind(2)
        turned = torch.stack((b[1], -b[0]))  # -ib
        strength = (
            strength + (torch.linalg.vector_norm(a + turned, dim=0) + torch.linalg.vector_norm(a - turned, dim=0)) / 2
        )
    return strength


def _complex_product(
    a: Float[Tensor, "batch 2 *rest"], b: Float[Tensor, "batch 2 *rest"]
) -> Float[Tensor, "batch 2 *rest"]:
    (x, y), (u, v) = a.unbind(1), b.unbind(1)
    return torch.stack((x * u - y * v, x * v + y * u), dim=1)
