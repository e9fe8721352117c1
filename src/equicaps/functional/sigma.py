"""The non-linearity σ of Algorithm 1: how a distance becomes a weight."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Sigma(ABC):
    """A map from negative distances ``(*batch, m, n)`` to weights, with m output and n input capsules.

    A frozen dataclass whose fields are numbers or zero-dimensional tensors; :class:`equicaps.nn.GroupCapsules` trains
    them. To add a σ, write ``__call__``.
    """

    closed_form: ClassVar[Literal["sigmoid", "linear"] | None] = None
    """What fast implementations of Algorithm 1 may take for granted, see :func:`equicaps.functional.route_windows`.

    ``"sigmoid"``: σ(x) = sigmoid(αx + β) with the fields ``alpha`` and ``beta``. ``"linear"``: σ(x) = 1 + x for
    -1 ≤ x ≤ 0. None: nothing but ``__call__``. Subclasses do not inherit it, since they may compute something else;
    a subclass for which it still holds states it again.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.closed_form = vars(cls).get("closed_form")

    @abstractmethod
    def __call__(self, x: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch m n"]:
        """σ(x) for x = -δ."""


@dataclass(frozen=True)
class Sigmoid(Sigma):
    """sigmoid(αx + β), each weight on its own (Section 2.1): a vote may go to several outputs, or to none."""

    closed_form = "sigmoid"

    alpha: float | Float[Tensor, ""] = 2.0
    beta: float | Float[Tensor, ""] = 2.0

    def __call__(self, x: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch m n"]:
        """σ(x) for x = -δ."""
        return torch.sigmoid(self.alpha * x + self.beta)


@dataclass(frozen=True)
class Linear(Sigma):
    """max(1 + x, 0), the authors' code: w = 1 - δ. Never clips on SO(2), where δ is at most 1."""

    closed_form = "linear"

    def __call__(self, x: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch m n"]:
        """σ(x) for x = -δ."""
        return torch.relu(1 + x)


@dataclass(frozen=True)
class Softmax(Sigma):
    """softmax(αx) over the output capsules (Sabour et al., 2017): outputs compete for each vote."""

    alpha: float | Float[Tensor, ""] = 2.0

    def __call__(self, x: Float[Tensor, "*batch m n"]) -> Float[Tensor, "*batch m n"]:
        """σ(x) for x = -δ."""
        return torch.softmax(self.alpha * x, dim=-2)
