"""Transformation generators: from an aligned position to the transformations t of all capsule pairs (Section 3)."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_count, check_positive
from equicaps.functional import directions
from equicaps.groups import SO2, Group


@dataclass(frozen=True)
class TransformKernel(ABC):
    """The kind of generator that a layer uses; the layer builds it for its group and its capsules."""

    hidden: int
    spread: float

    @abstractmethod
    def build(self, group: Group, in_capsules: int, out_capsules: int) -> "TransformGenerator":
        """A generator with fresh parameters."""


@dataclass(frozen=True)
class TransformMLP(TransformKernel):
    """The paper's two-layer MLP: position -> ReLU(hidden) -> n·m group elements.

    On SO(2) it emits 2-vectors and normalises them, which is cheaper than sine and cosine and has no seam at ±π. On
    other groups it emits Lie algebra vectors, which ``group.exp`` maps into the group. With 16 hidden units the paper's
    five layers have 144,410 parameters, those of σ included.

    Args:
        hidden: the width of the hidden layer.
        spread: how far the first transformations are from the identity, approximately, in radians.
        per_capsule: whether the position is aligned with every input capsule's own mean pose, as in the authors' code:
            2n numbers, from which t can read how the capsules of a window are rotated against each other. Otherwise it
            is aligned with one mean pose of all capsules.
    """

    hidden: int = 16
    spread: float = 0.5
    per_capsule: bool = False

    def build(self, group: Group, in_capsules: int, out_capsules: int) -> "TransformGenerator":
        """A generator with fresh parameters."""
        return TransformGenerator(
            group, in_capsules, out_capsules, hidden=self.hidden, spread=self.spread, per_capsule=self.per_capsule
        )


@dataclass(frozen=True)
class TransformLinear(TransformKernel):
    """The form in the authors' code: two linear maps without bias, to Lie algebra vectors (angles on SO(2)).

    Its input is the position aligned with every input capsule's own mean pose, 2n numbers. The paper's five layers then
    have 144,970 parameters, those of σ included: the paper's 145k.

    Args:
        hidden: the width of the hidden layer.
        spread: how far the first transformations are from the identity, approximately, in radians.
    """

    hidden: int = 32
    spread: float = 0.5

    def build(self, group: Group, in_capsules: int, out_capsules: int) -> "TransformGenerator":
        """A generator with fresh parameters."""
        return TransformGenerator(group, in_capsules, out_capsules, hidden=self.hidden, spread=self.spread, linear=True)


@final
class TransformGenerator(nn.Module):
    """t: position -> n·m group elements; see :class:`TransformMLP` and :class:`TransformLinear`.

    Final, because fast implementations of Algorithm 1 read ``features`` and ``weight`` instead of calling it.

    Args:
        group: the group of the transformations.
        in_capsules: n, the number of input capsules.
        out_capsules: m, the number of output capsules.
        hidden: the width of the hidden layer.
        spread: see :class:`TransformMLP`.
        per_capsule: see :class:`TransformMLP`.
        linear: the authors' form: per capsule, without bias or non-linearity.
    """

    def __init__(
        self, group: Group, in_capsules: int, out_capsules: int, *, hidden: int, spread: float = 0.5,
        per_capsule: bool = False, linear: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        check_count("TransformGenerator", "hidden", hidden)
        check_positive("TransformGenerator", "spread", spread)
        self.spread = spread
        self.group = group
        self.in_capsules = in_capsules
        self.out_capsules = out_capsules
        self.linear = linear
        self.per_capsule = per_capsule or linear
        self.emits_directions = isinstance(group, SO2) and not linear
        emitted = 2 if self.emits_directions else group.algebra_dim
        positions = in_capsules if self.per_capsule else 1
        self.first = nn.Linear(group.point_dim * positions, hidden, bias=not linear)
        columns = hidden if linear else hidden + 1  # the last one is the bias
        self.weight = nn.Parameter(torch.empty(emitted, out_capsules, in_capsules, columns))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new parameters: transformations around the identity that differ from position to position.

        They are not spread over the whole group, since random votes would cancel and a deep network would start with
        undefined poses.
        """
        self.first.reset_parameters()
        scale = self.spread / math.sqrt(self.group.algebra_dim)
        nn.init.normal_(self.weight, std=scale / math.sqrt(self.first.out_features))
        if not self.linear:
            nn.init.normal_(self.weight.data[..., -1], std=scale)
        if self.emits_directions:
            self.weight.data[0, ..., -1] += 1

    def features(self, aligned: Float[Tensor, "*batch i"]) -> Float[Tensor, "*batch f"]:
        """The input of the last linear map: the hidden layer and, for its bias, a constant 1 unless ``linear``."""
        hidden = self.first(aligned)
        return hidden if self.linear else torch.nn.functional.pad(torch.relu(hidden), (0, 1), value=1.0)

    def forward(self, aligned: Float[Tensor, "*batch i"]) -> Float[Tensor, "*batch m n d"]:
        """Group elements for aligned positions; i is the dimension of space, times n per capsule."""
        raw = torch.einsum("...f,emnf->...mne", self.features(aligned), self.weight)
        return directions(raw) if self.emits_directions else self.group.exp(raw)

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return f"R^{self.first.in_features} -> ({self.group!r})^({self.out_capsules} x {self.in_capsules})"
