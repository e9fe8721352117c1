"""What a group is to this library: the group law, its action on points, the weighted mean M and the distance δ."""

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps._checks import check_arguments
from equicaps.numerics import CANCELLATION

Generator: TypeAlias = torch.Generator | None
DType: TypeAlias = torch.dtype | None
Device: TypeAlias = torch.device | str | None

_TENSOR_METHODS = {"compose", "inverse", "act", "mean", "distance", "exp", "log", "contains", "presence"}


def _checked(name: str, method: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same method, which checks its arguments first."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    names = tuple(parameter.name for parameter in parameters if parameter.default is parameter.empty)

    @functools.wraps(method)
    def call(self: "Group", *args: Any, **kwargs: Any) -> Tensor:
        tensors = [*args[: len(names)], *(kwargs[key] for key in names[len(args) :] if key in kwargs)]
        if len(tensors) == len(names):  # otherwise Python's own error says it best
            check_arguments(self, name, names, tensors)
        return method(self, *args, **kwargs)

    return call


class Group(ABC):
    r"""A Lie group :math:`(G, \circ)` as a stateless policy object over plain tensors (Section 2 of the paper).

    Elements carry their coordinates in one trailing axis of size ``dim``; all other axes are batch and broadcast.
    Theorems 1 and 2 require three properties of M and δ, for all g in G:

    - M is left-equivariant, :math:`M(g \circ P, w) = g \circ M(P, w)`, and does not depend on the order of P;
    - G is closed under M (``mean_is_closed``);
    - δ is left-invariant, :math:`δ(g \circ p, g \circ q) = δ(p, q)`.

    A group that cannot promise one of them says so in its class attributes, and :func:`equicaps.testing.check_group`
    measures them. An *undefined pose* has ``presence`` 0 or activation 0; without evidence ``mean`` returns the zero
    vector.

    To add a group, write the ten abstract methods below. Their arguments are checked (shape, dtype, device) before each
    call, so that the methods need not.
    """

    dim: int
    """Size of the trailing axis of an element."""
    algebra_dim: int
    """Size of the trailing axis of a Lie algebra vector."""
    point_dim: int
    """Size of the trailing axis of a point that the group acts on."""
    mean_is_closed: bool = True
    """Whether M maps into the group, as Theorem 1 requires."""
    distance_is_symmetric: bool = True
    """Whether δ(p, q) = δ(q, p), which no theorem requires."""
    floor: float = CANCELLATION
    """The relative length of a weighted sum at which M fades, in groups whose M is a normalised sum."""
    closed_form: ClassVar[Literal["unit complex"] | None] = None
    """What fast implementations of Algorithm 1 may take for granted, see :func:`equicaps.functional.route_windows`.

    ``"unit complex"``: elements are unit complex numbers with their product, and zero is the undefined pose; M is the
    normalised weighted sum, which fades at ``floor``, and δ = (1 - ⟨p, q⟩)/2. None: nothing but the methods. Subclasses
    do not inherit it, since they may redefine any of them; a subclass for which it still holds states it again.
    """

    @abstractmethod
    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape d"]:
        """The neutral element, repeated over ``shape``."""

    @abstractmethod
    def compose(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch d"]:
        """g ∘ h: h is applied first."""

    @abstractmethod
    def inverse(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """The element with g⁻¹ ∘ g = g ∘ g⁻¹ = e."""

    @abstractmethod
    def act(self, g: Float[Tensor, "*#batch d"], points: Float[Tensor, "*#batch x"]) -> Float[Tensor, "*batch x"]:
        """The left action g · x on points."""

    @abstractmethod
    def mean(self, elements: Float[Tensor, "*#batch n d"], weights: Float[Tensor, "*#batch n"]) -> Float[Tensor, "..."]:
        """M: the weighted mean over axis -2."""

    @abstractmethod
    def distance(self, g: Float[Tensor, "*#batch d"], h: Float[Tensor, "*#batch d"]) -> Float[Tensor, "*batch"]:
        """δ: the left-invariant distance."""

    @abstractmethod
    def exp(self, algebra: Float[Tensor, "*batch a"]) -> Float[Tensor, "*batch d"]:
        """The exponential map of the Lie algebra."""

    @abstractmethod
    def log(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch a"]:
        """The principal logarithm: exp(log(g)) = g."""

    @abstractmethod
    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape d"]:
        """Random elements; uniform (Haar) on compact groups."""

    @abstractmethod
    def contains(self, g: Float[Tensor, "*batch d"]) -> Bool[Tensor, "*batch"]:
        """Whether g is an element, up to rounding."""

    @functools.partial(_checked, "presence")
    def presence(self, g: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        """1 for an element, 0 for the undefined pose, and smooth in between.

        It is always 1 in groups where the zero vector is an element like any other (translations); there only the
        activation says that a pose is undefined.
        """
        return torch.ones_like(g[..., 0])

    def fade(self, g: Float[Tensor, "*batch d"], presence: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch d"]:
        """Let g become undefined as ``presence`` falls from 1 to 0, left-equivariantly.

        By default g shrinks to the zero vector, which is correct where the group acts linearly on its coordinates.
        Coordinates that the group shifts must not shrink: a group that does not override ``presence`` returns g itself.
        """
        return g if type(self).presence is Group.presence else g * presence.unsqueeze(-1)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.closed_form = vars(cls).get("closed_form")
        for name in _TENSOR_METHODS & vars(cls).keys():
            setattr(cls, name, _checked(name, vars(cls)[name]))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return type(self).__name__

    def __hash__(self) -> int:
        return hash((type(self), *sorted(vars(self).items())))
