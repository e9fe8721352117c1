"""The part of layers for points that has weights: from moments to capsules."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps import groups
from equicaps._checks import check_count
from equicaps.functional.steering import (
    PAIRS,
    Frame,
    Moments,
    Planes,
    agreed_frames,
    dot,
    flattened,
    tensors_at,
    vectors_at,
)
from equicaps.nn.batch_norm import BatchNorm2d
from equicaps.numerics import FAINT_FRAME, NO_EVIDENCE, at_least, safe_reciprocal


class SteeredCapsules(nn.Module):
    r"""Pose by agreement and group convolution at that pose, from scalars, vectors and matrices that rotate.

    Linear maps mix the vectors into :math:`a_j, b_j` and :math:`Y_j^{(k)}`, the matrices into :math:`Z_j^{(ik)}` and
    the scalars into :math:`s_j`. The pose :math:`p_j = (e_1\, e_2\, e_3)` is Gram and Schmidt's frame of
    :math:`a_j` and :math:`b_j`, and

    .. math:: f_j = \mathrm{norm}\Big(s_j + \sum_k \langle Y_j^{(k)}, e_k \rangle + \sum_{ik} e_i^T Z_j^{(ik)} e_k\Big).

    If the moments are those of a rotated cloud, poses rotate and features stay, for every rotation, up to rounding.

    Args:
        scalars: the number of scalars at each place.
        vectors: the number of vectors.
        tensors: the number of symmetric matrices; 0 if there are none.
        out_capsules: the number of capsules at each place.
    """

    scalar_power: Tensor
    vector_power: Tensor
    tensor_power: Tensor
    pose_power: Tensor
    batches: Tensor

    def __init__(self, scalars: int, vectors: int, tensors: int, out_capsules: int) -> None:
        super().__init__()
        for name in ("scalars", "vectors", "out_capsules"):
            check_count("SteeredCapsules", name, locals()[name])
        self.out_capsules = out_capsules
        self.scalars = nn.Parameter(torch.empty(out_capsules, scalars))
        self.vectors = nn.Parameter(torch.empty(5 * out_capsules, vectors))
        self.tensors = nn.Parameter(torch.empty(len(PAIRS) * out_capsules, tensors)) if tensors else None
        self.norm = BatchNorm2d(out_capsules)
        for kind, count in (("scalar", scalars), ("vector", vectors), ("tensor", tensors)):
            self.register_buffer(f"{kind}_power", torch.ones(count))
        self.register_buffer("pose_power", torch.ones(2, out_capsules))
        self.register_buffer("batches", torch.zeros((), dtype=torch.long))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights, and forget the running statistics."""
        for weight in (self.scalars, self.vectors, self.tensors):
            if weight is not None:
                nn.init.normal_(weight, std=1 / math.sqrt(weight.shape[1]))
        self.norm.reset_parameters()
        for power in (self.scalar_power, self.vector_power, self.tensor_power, self.pose_power):
            power.fill_(1.0)
        self.batches.zero_()

    def forward(
        self, moments: Moments, counts: Bool[Tensor, " n"] | None = None
    ) -> tuple[Float[Tensor, "n c 9"], Float[Tensor, "n c"]]:
        """Poses, and features that are normalised but not rectified.

        Args:
            moments: of every place.
            counts: which places are not only padding, by default all; only they count in the statistics of a training.
        """
        if self.training and counts is not None and not counts.all():
            places = counts.nonzero().squeeze(1)
            poses, features = self(moments.at(places))
            return _spread(poses, places, len(counts)), _spread(features, places, len(counts))
        frame, features, _ = self._steer(moments)
        return flattened(frame), features

    def vote(self, moments: Moments) -> tuple[Float[Tensor, "n c 9"], Float[Tensor, "n c"], Float[Tensor, "n c"]]:
        r"""Like :meth:`forward`, with the agreement of the votes for each pose, in [0, 1].

        That is the mean of :math:`|a_j|` and :math:`|b_j|`, each divided by the length that it would have if all
        vectors pointed the same way, where the pose is defined, and 0 where it is not.
        """
        frame, features, pair = self._steer(moments)
        poses = flattened(frame)
        weight = self._scaled(self.vectors, self.vector_power)[: 2 * self.out_capsules].abs()
        lengths = torch.linalg.vector_norm(moments.vectors, dim=0)
        strength = F.linear(lengths, weight).unflatten(-1, (2, -1)).movedim(1, 0)
        resultant = torch.stack([torch.linalg.vector_norm(torch.stack(list(vector)), dim=0) for vector in pair])
        agreement = (resultant * safe_reciprocal(strength, NO_EVIDENCE)).mean(0)
        return poses, features, agreement * groups.SO3().presence(poses)  # imported only now, because it needs roma

    def _steer(self, moments: Moments) -> tuple[Frame, Float[Tensor, "n c"], tuple[Planes, Planes]]:
        first = self.training and not torch.compiler.is_compiling() and int(self.batches) == 0
        share = 1.0 if first else (self.norm.momentum or 0.1)
        if self.training:
            self._follow(moments, share)
        a, b, *along = self._mixed(moments.vectors, self.vectors, self.vector_power)
        if self.training:
            with torch.no_grad():
                self.pose_power.lerp_(torch.stack([dot(a, a).mean(0), dot(b, b).mean(0)]), share)
        frame = agreed_frames(a, b, at_least(FAINT_FRAME * self.pose_power.sqrt(), NO_EVIDENCE))
        features = F.linear(moments.scalars, self._scaled(self.scalars, self.scalar_power)) + vectors_at(frame, along)
        if self.tensors is not None:
            tensors = self._mixed(moments.tensors, self.tensors, self.tensor_power)
            features = features + tensors_at(frame, tensors)
        return frame, self.norm(features[:, :, None, None])[:, :, 0, 0], (a, b)

    def _mixed(self, planes: Float[Tensor, "d n v"], weight: Tensor, power: Tensor) -> list[Planes]:
        """All mixtures, each by its coordinates; views, so that gradients fill no large tensor with zeros."""
        mixed = F.linear(planes, self._scaled(weight, power)).unbind(0)
        return list(zip(*(plane.split(self.out_capsules, -1) for plane in mixed), strict=True))

    @staticmethod
    def _scaled(weight: Tensor, power: Tensor) -> Tensor:
        """The weights for moments as they come; those that are learned are for moments of unit power."""
        return weight * at_least(power, NO_EVIDENCE).rsqrt()

    @torch.no_grad()
    def _follow(self, moments: Moments, share: float) -> None:
        """Update the running powers, linearly in the batch, so that processes can average them."""
        self.scalar_power.lerp_(moments.scalars.square().mean(0), share)
        self.vector_power.lerp_(moments.vectors.square().sum(0).mean(0), share)
        self.tensor_power.lerp_(moments.tensors.square().sum(0).mean(0), share)
        self.batches += 1

    def extra_repr(self) -> str:
        """The mathematical signature."""
        tensors = 0 if self.tensors is None else self.tensors.shape[1]
        given = f"{self.scalars.shape[1]} scalars + {self.vectors.shape[1]} vectors + {tensors} matrices"
        return f"{given} -> {self.out_capsules} capsules on SO(3)"


def _spread(values: Tensor, places: Int[Tensor, " m"], count: int) -> Tensor:
    """What was computed at some of ``count`` places, and zeros at the others."""
    return values.new_zeros(count, *values.shape[1:]).index_copy(0, places, values)
