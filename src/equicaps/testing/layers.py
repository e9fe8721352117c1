"""Check the equivariance and invariance of a layer, or of any function of group elements."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.functional import Capsules
from equicaps.groups import SO2, Group
from equicaps.groups.base import Generator
from equicaps.metrics import move_grid, quarter_turns
from equicaps.numerics import law_tolerance
from equicaps.testing.comparison import relative_error

Function = Callable[[Tensor], Tensor]


@runtime_checkable
class CapsuleOutput(Protocol):
    """Anything with poses and activations, such as :class:`equicaps.functional.Routing`."""

    @property
    def poses(self) -> Tensor:
        """Output poses ``(*batch, m, d)``."""

    @property
    def activations(self) -> Tensor:
        """Output activations ``(*batch, m)``."""


class EquivarianceError(NamedTuple):
    """The errors of Theorems 1 and 2, relative to the largest coordinate, or absolute where that is below 1."""

    poses: float
    """The error of the claim L_p(g ∘ P, a) = g ∘ L_p(P, a), where poses are defined."""
    activations: float
    """The error of the claim L_a(g ∘ P, a) = L_a(P, a)."""
    control: float
    """The error of the false claim L_p(g ∘ P, a) = L_p(P, a). If this is small, the other two mean nothing."""


def equivariance_error(
    module: Callable[[Tensor, Tensor], CapsuleOutput],
    group: Group,
    poses: Float[Tensor, "*batch n d"],
    activations: Float[Tensor, "*batch n"],
    *,
    generator: torch.Generator | None = None,
) -> EquivarianceError:
    """Measure how far a capsule layer, or a stack of them, is from Theorems 1 and 2.

    One random group element is drawn for each entry of the batch. The function returns figures and judges nothing; it
    computes no gradients.

    Args:
        module: maps poses and activations to capsules.
        group: the group of the poses.
        poses: the input poses.
        activations: the input activations.
        generator: the source of the random elements; by default torch's own.
    """
    with torch.no_grad():
        g = group.random(*poses.shape[:-2], 1, generator=generator, dtype=poses.dtype, device=poses.device)
        still, moved = module(poses, activations), module(group.compose(g, poses), activations)
        defined = (group.presence(still.poses) > 0.5).unsqueeze(-1)
        return EquivarianceError(
            poses=relative_error(moved.poses * defined, group.compose(g, still.poses) * defined),
            activations=relative_error(moved.activations, still.activations),
            control=relative_error(moved.poses * defined, still.poses * defined),
        )


def grid_equivariance_error(
    module: Callable[[Capsules], Capsules], capsules: Capsules, quarters: int = 0, *, mirrored: bool = False
) -> EquivarianceError:
    """The same for a layer of capsules on a grid, which is rotated by quarter turns.

    With ``mirrored``, left and right are exchanged first, which takes a pose (x, y) to (-x, y).
    """
    with torch.no_grad():
        still, moved = module(capsules), module(quarter_turns(capsules, quarters, mirrored=mirrored))
        expected = quarter_turns(still, quarters, mirrored=mirrored)
        defined = (SO2().presence(expected.poses) > 0.5).unsqueeze(-1)
        return EquivarianceError(
            poses=relative_error(moved.poses * defined, expected.poses * defined),
            activations=relative_error(moved.activations, expected.activations),
            control=relative_error(
                moved.poses * defined, move_grid(still.poses, quarters, mirrored=mirrored) * defined
            ),
        )


def assert_left_equivariant(
    function: Function, group: Group, elements: Float[Tensor, "*batch d"], *, generator: Generator = None,
    tolerance: float | None = None,
) -> None:  # fmt: skip
    """Assert function(g ∘ elements) = g ∘ function(elements) for one random g.

    Raises:
        AssertionError: if it does not hold; the message states the error.
        ValueError: if g leaves the elements or the output in place, so that the assertion could not have failed.
    """
    g, moved = _move(group, elements, generator)
    still = function(elements)
    expected = group.compose(g, still)
    if relative_error(expected, still) == 0:
        raise ValueError(
            "assert_left_equivariant: the random group element does not move the output, so the check could not have "
            "failed; pass a function whose output the group acts on."
        )
    _assert_close("f(g ∘ x) = g ∘ f(x)", function(moved), expected, tolerance)


def assert_invariant(
    function: Function, group: Group, elements: Float[Tensor, "*batch d"], *, generator: Generator = None,
    tolerance: float | None = None,
) -> None:  # fmt: skip
    """Assert function(g ∘ elements) = function(elements) for one random g; see :func:`assert_left_equivariant`."""
    _, moved = _move(group, elements, generator)
    _assert_close("f(g ∘ x) = f(x)", function(moved), function(elements), tolerance)


def _move(group: Group, elements: Tensor, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
    g = group.random(generator=generator, dtype=elements.dtype, device=elements.device)
    moved = group.compose(g, elements)
    if relative_error(moved, elements) == 0:
        raise ValueError(
            f"{group!r}: the random element does not move the elements, so the check could not have failed; pass "
            "elements that the group moves."
        )
    return g, moved


def _assert_close(claim: str, actual: Tensor, expected: Tensor, tolerance: float | None) -> None:
    if actual.shape != expected.shape:
        raise AssertionError(f"{claim} fails: shapes {tuple(actual.shape)} and {tuple(expected.shape)} differ.")
    limit = law_tolerance(expected.dtype) if tolerance is None else tolerance
    error = relative_error(actual, expected)
    if not error <= limit:
        raise AssertionError(f"{claim} fails: relative error {error:.2e}, allowed {limit:.2e} in {actual.dtype}.")
