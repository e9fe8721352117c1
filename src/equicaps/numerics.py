r"""Where floating point meets the mathematics: the only file with an epsilon in it.

Every division by something that may vanish *saturates*: with a length :math:`\ell` and the noise floor :math:`\varphi`
of the sum it came from, :math:`1/\ell` becomes :math:`\tanh(\ell/\varphi)/\ell`. Far above the floor this is
:math:`1/\ell` to the last bit (tanh is exactly 1 from about 20 on); at the floor it bends, and below the floor it never
exceeds :math:`1/\varphi`. The result is therefore smooth and Lipschitz: votes that cancel give a pose that shrinks to
the zero vector, instead of rounding noise blown up to a direction.
"""

import contextlib
import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

P = ParamSpec("P")
R = TypeVar("R")

CANCELLATION = 0.1
"""The resultant length, relative to the sum of weights, at which votes count as cancelling.

A single mean could do with 1e-3, but every routing iteration divides the rounding errors so far by this number once
more: at 0.05, regular polygons of votes that nearly cancel, rotated by any angle, miss 1e-4 in float32 (a test shows
it). Above 0.1, more and more poses of a deep network become undefined, and it learns more slowly.
"""

BLOCK_CANCELLATION = 0.02
"""The same for 2x2 blocks of a grid, whose sums a quarter turn does not change by a single bit in eager programs.

There the floor need not hide rounding errors from one iteration to the next; it only keeps derivatives bounded. At 0.1
most class poses of the paper's network are undefined when its training begins, and it hardly learns.
"""

CERTAIN = 32.0
"""The argument from which on tanh is exactly 1, with derivative 0, in every precision."""

OPPOSED_WEIGHTS = 1e-3
"""The sum of weights, relative to the sum of their magnitudes, at which weights of both signs count as cancelling."""

NO_EVIDENCE = 1e-9
"""The sum of weights that is negligible beside any ordinary one; a thousandth of it counts as zero."""

FAINT_VOICE = 1e-3
"""The activation, relative to the largest, at which an input capsule stops counting in the mean distance."""

FAINT_RESPONSE = 0.1
"""The length of a response, relative to its running root mean square, at which an image capsule's pose fades."""

FAINT_FRAME = 0.3
"""The length of a vector, relative to its running root mean square, at which the frame of a capsule on points fades."""

VANISHING_KERNEL = 1e-6
"""The largest value of a basis kernel at which it counts as zero on the grid; all others have unit energy."""

FAINT_DIRECTION = 1e-6
"""The length at which the 2-vector of a transformation generator fades."""

FAINT_GRADIENT = 1e-5
"""The gradient of an image in [0, 1] at which its pose fades: far below one grey level in 255, far above rounding."""

OUT_OF_RANGE = 1e-3
"""How far pixels may leave [0, 1] without a warning, since interpolation can overshoot."""

SINGULAR = 1e-6
"""The reciprocal condition number at which a matrix counts as singular; about the rounding noise of float32."""

FAINT_ADJUGATE = 1e-5
"""The size of the adjugate of a matrix of size 1 at which it counts as noise."""

ZERO_MATRIX = 1e-12
"""The size at which a matrix counts as zero."""

NEWTON_STEPS = 2
"""The number of steps that refine an inverse; each squares its error."""

FAINT_MOMENT = 0.1
"""The length of a moment of a neighbourhood, at most 1, from which on it gives a frame its direction."""

FLAT_MOMENT = 1e-2
"""The mean square distance of neighbours, in square radii, at which they count as one point."""

FAINT_POINT = 0.25
"""The weight below which a point moves out of reach, so that points that fade do not take the place of neighbours."""

FAINT_ACTIVITY = 0.25
"""The sum of the activations in a neighbourhood at which its capsules fade; below, rounding noise would be heard."""

COINCIDENT = 1e-3
"""The distance, in radii, at which points are one: no rim comes closer."""

CLOUD_NOISE = 1e-5
"""The size of a cloud, relative to its distance from the origin, at which it is nothing but rounding errors."""

TIE_SQUARINGS = 6
"""The squarings after which :func:`dominant_projector` looks for ties: how close two eigenvalues may be."""

TIED, UNTIED = 0.7, 0.98
"""The purity of the projector then, up to which eigenvalues tie and from which on they do not: 2.3 and 6.9 percent."""

SQUARINGS = 11
"""The squarings after which the projector is exact wherever there is no tie: 0.23^32 is below any rounding."""


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """Exempt a function from autocast: a guarantee in float32 does not survive products in bfloat16."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        given = (*args, *kwargs.values())
        devices = {value.device.type for value in given if isinstance(value, Tensor) and not value.is_meta}
        affected = [device for device in devices if torch.is_autocast_enabled(device)]
        if not affected:
            return function(*args, **kwargs)
        with contextlib.ExitStack() as stack:
            for device in affected:
                stack.enter_context(torch.autocast(device, enabled=False))
            return function(*args, **kwargs)

    return call


def membership_tolerance(dtype: torch.dtype) -> float:
    """The distance from a group up to which an element still counts as a member."""
    return float(torch.finfo(dtype).eps ** 0.5)


def law_tolerance(dtype: torch.dtype) -> float:
    """The relative error up to which an identity of group theory counts as holding in ``dtype``."""
    return float(torch.finfo(dtype).eps ** 0.6)


def at_least(x: Float[Tensor, "*batch"], floor: float) -> Float[Tensor, "*batch"]:
    """max(x, floor); not x + floor, because ONNX optimisers take numbers below 1e-8 for zero and drop the sum."""
    return x.clamp(min=floor)


def above_zero(square: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """A square length of which the root can be taken and divided by."""
    return at_least(square, torch.finfo(square.dtype).eps ** 2)


def noise_floor(weights: Float[Tensor, "*batch n"], relative: float = CANCELLATION) -> Float[Tensor, "*batch 1"]:
    """The length below which a weighted sum of unit elements is indistinguishable from cancellation."""
    return relative * at_least(weights.abs().sum(-1, keepdim=True), NO_EVIDENCE)


def safe_normalize(vector: Float[Tensor, "*batch d"], floor: Float[Tensor, "*#batch 1"]) -> Float[Tensor, "*batch d"]:
    r"""The saturating direction :math:`S \tanh(z + z^3) / |S|` with :math:`z = |S|/\varphi`.

    It is zero at zero, has a slope of at most 1.22/φ, and unit length to the last bit from 2.6 floors on, where tanh(z)
    alone would fall short by 1 %.
    """
    scaled = vector / floor
    z = torch.sqrt(above_zero(scaled.square().sum(-1, keepdim=True)))
    return scaled * (torch.tanh(steepened(z)) / z)


def direction_factor(square: Float[Tensor, "*batch"], floor: Float[Tensor, "*#batch"]) -> Float[Tensor, "*batch"]:
    """What makes a vector of this square length its saturating direction: :func:`safe_normalize`, by its square."""
    z = torch.sqrt(above_zero(square / floor.square()))
    return torch.tanh(steepened(z)) / (z * floor)


def steepened(z: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """z + z³, clamped where its tanh is 1 anyway."""
    return (z + z * z.square()).clamp(max=CERTAIN)


def saturating_inverse(square: Float[Tensor, "*batch"], floor: Float[Tensor, "*#batch"]) -> Float[Tensor, "*batch"]:
    r"""The saturating inverse :math:`\tanh(\ell/\varphi) / \ell` of a length that is given by its square."""
    return _tanhc(square / floor.square()) / floor


def safe_reciprocal(x: Float[Tensor, "*batch"], floor: float | Float[Tensor, "*#batch"]) -> Float[Tensor, "*batch"]:
    r"""The saturating inverse :math:`\tanh^2(x/\varphi) / x`: odd, equal to 1/x far above the floor, zero at zero."""
    z = x / floor
    return torch.tanh(z) * _tanhc(z.square()) / floor


def flatten_at_one(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """x (2 - x): 0 at 0, and 1 at 1 with slope zero, so that rounding of x near 1 has no effect."""
    return x * (2 - x)


def is_nothing(x: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
    """Whether a number is zero, or so small that sums of its reciprocals overflow."""
    return x.abs() < 1024 * torch.finfo(x.dtype).tiny


def smooth_step(x: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """0 up to 0, 1 from 1 on, with slope zero at both."""
    x = x.clamp(0, 1)
    return x * x * (3 - 2 * x)


def length(vector: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
    """The Euclidean length, also of vectors whose square no number holds."""
    largest = vector.detach().abs().amax(-1, keepdim=True).clamp(min=1)
    return torch.linalg.vector_norm(vector / largest, dim=-1) * largest.squeeze(-1)


def at_most_one(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """The same weights divided by the largest, if that exceeds 1: means do not change, and sums do not overflow."""
    return weights / weights.detach().abs().amax(-1, keepdim=True).clamp(min=1)


def speaks(activations: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """1 for an active capsule, 0 for one that is negligible beside the most active, smooth in between."""
    loudest = at_least(activations.abs().amax(-1, keepdim=True), NO_EVIDENCE)
    return torch.tanh((activations / (FAINT_VOICE * loudest)).square())


def evidence(weights: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """1 where the weights define a weighted mean, 0 where they are all zero or cancel, smooth in between."""
    weights = at_most_one(weights)
    return torch.tanh(weights.sum(-1) / noise_floor(weights, OPPOSED_WEIGHTS).squeeze(-1)).square()


def weighted_sum(
    elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """The weighted sum of ``elements`` over axis -2."""
    return torch.matmul(weights.unsqueeze(-2), elements).squeeze(-2)


def weighted_mean(
    elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]
) -> Float[Tensor, "*batch d"]:
    """The weighted mean of ``elements`` over axis -2; the zero vector without evidence."""
    weights = at_most_one(weights)
    total = weights.sum(-1, keepdim=True)
    return weighted_sum(elements, weights) * safe_reciprocal(total, noise_floor(weights, OPPOSED_WEIGHTS))


def dominant_projector(
    symmetric: Float[Tensor, "*batch k k"],
) -> tuple[Float[Tensor, "*batch k k"], Float[Tensor, "*batch"]]:
    r"""The projector onto the dominant eigenvector, :math:`A^{2^s} / \mathrm{tr}\, A^{2^s}`, and how unique that is.

    It uses only products and quotients, so it exports, and its gradient stays finite where eigenvalues meet. Uniqueness
    is exactly 1 where one eigenvalue is clearly the largest and exactly 0 where two or more tie, judged by the purity
    :math:`\mathrm{tr} P^2` after fewer squarings, so that it fades before rounding can choose between them. Wherever it
    is not 0, the projector is one up to rounding. The matrix must be positive semidefinite and not zero.
    """
    power, purity = symmetric, symmetric.new_zeros(())
    for squaring in range(1, SQUARINGS + 1):
        power = power @ power
        power = power / _trace(power)
        if squaring == TIE_SQUARINGS:
            purity = power.square().sum((-2, -1))
    return power, smooth_step((purity - TIED) / (UNTIED - TIED))


def safe_inverse(
    matrix: Float[Tensor, "*batch n n"],
) -> tuple[Float[Tensor, "*batch n n"], Float[Tensor, "*batch"]]:
    r"""An inverse that falls to the zero matrix as the matrix becomes singular, and how regular the matrix is.

    :math:`A^{-1} = \mathrm{adj}(A) / \det A` with the saturating reciprocal, relative to the size of A and of its
    adjugate: what saturates is the reciprocal condition number :math:`n / (|A|_F |A^{-1}|_F)`. Adjugate and determinant
    are polynomials in A (Faddeev-LeVerrier), so value and gradient are finite everywhere; Newton steps remove their
    rounding errors.
    """
    n = matrix.shape[-1]
    largest = matrix.detach().abs().amax((-2, -1), keepdim=True).clamp(min=1)  # no number holds a huge square
    size = largest * torch.sqrt(at_least((matrix / largest).square().sum((-2, -1), keepdim=True) / n, ZERO_MATRIX**2))
    unit = matrix / size
    identity = torch.eye(n, dtype=matrix.dtype, device=matrix.device)
    adjugate, product = identity.expand_as(unit), unit
    for k in range(1, n):
        adjugate = product - (_trace(product) / k) * identity
        product = unit @ adjugate
    # The recursion gives adjugate and determinant up to a common sign, which cancels below.
    adjugate_size = torch.sqrt(at_least(adjugate.square().sum((-2, -1), keepdim=True) / n, ZERO_MATRIX**2))
    condition = _trace(product) / n / adjugate_size
    known = torch.tanh(adjugate_size / FAINT_ADJUGATE).square()  # at rank n - 2 even the adjugate is only noise
    inverse = adjugate / adjugate_size * safe_reciprocal(condition, SINGULAR) * known
    for _ in range(NEWTON_STEPS):
        inverse = inverse @ (2 * identity - unit @ inverse)
    return inverse / size, (torch.tanh(condition / SINGULAR).square() * known).squeeze((-2, -1))


def _tanhc(square: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """tanh(z) / z as a function of z²: smooth, 1 at zero."""
    z = torch.sqrt(above_zero(square))
    return torch.tanh(z) / z


def _trace(matrix: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch 1 1"]:
    return matrix.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
