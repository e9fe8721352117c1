r"""Frames by agreement, and features at these frames, from moments that rotate with a cloud.

A linear map mixes scalars into scalars, vectors into vectors and symmetric matrices into such, so what it makes rotates
like what it was given. Coordinates come first in this file: vectors are three planes and symmetric matrices six, each
of shape (n, channels), which one core processes several times faster than coordinates in the last axis.
"""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.numerics import direction_factor

Planes = Sequence[Float[Tensor, "#n #c"]]
"""A vector by its coordinates, or a symmetric matrix by xx, yy, zz, xy, xz, yz."""
Frame = tuple[Planes, Planes, Planes]
"""The columns of a rotation matrix, each by its coordinates."""

PAIRS = ((0, 0), (1, 1), (0, 1), (0, 2), (1, 2))
"""The columns of a frame between which a symmetric matrix is read; of the third square the trace leaves nothing new."""


class Moments(NamedTuple):
    """What a neighbourhood shows: numbers that stay, vectors and symmetric matrices that rotate."""

    scalars: Float[Tensor, "n s"]
    vectors: Float[Tensor, "3 n v"]
    tensors: Float[Tensor, "6 n t"]
    """xx, yy, zz, xy, xz, yz."""

    @staticmethod
    def cat(parts: "list[Moments]") -> "Moments":
        """All channels of moments at the same places, one after the other."""
        return Moments(*(torch.cat(entries, dim=-1) for entries in zip(*parts, strict=True)))

    def at(self, places: Int[Tensor, " m"]) -> "Moments":
        """The moments at some of the places."""
        return Moments(self.scalars[places], self.vectors[:, places], self.tensors[:, places])


def agreed_frames(first: Planes, second: Planes, floors: Float[Tensor, "2 c"]) -> Frame:
    r"""Orthonormal frames from two vectors, by Gram and Schmidt.

    :math:`e_1 = a / |a|`, :math:`e_2` is the direction of what b has beyond :math:`e_1`, and
    :math:`e_3 = e_1 \times e_2`. Both directions saturate at their floor: where a vector is about to vanish, the
    frame falls smoothly to zero in place of following rounding errors; where both are about to be parallel,
    :math:`e_2` and :math:`e_3` do, and only :math:`e_1` is left, which is no rotation.
    """
    low, low_beyond = floors.unbind(0)
    e1 = _direction(first, low)
    along = dot(second, e1)
    e2 = _direction([torch.addcmul(b, along, e, value=-1) for b, e in zip(second, e1, strict=True)], low_beyond)
    e3 = [e1[1] * e2[2] - e1[2] * e2[1], e1[2] * e2[0] - e1[0] * e2[2], e1[0] * e2[1] - e1[1] * e2[0]]
    return e1, e2, e3


def vectors_at(frame: Frame, vectors: Sequence[Planes]) -> Float[Tensor, "n c"]:
    r""":math:`\sum_k \langle y_k, e_k \rangle` for one vector of each column."""
    first, second, third = (dot(y, e) for y, e in zip(vectors, frame, strict=True))
    return first + second + third


def tensors_at(frame: Frame, tensors: Sequence[Planes]) -> Float[Tensor, "n c"]:
    r""":math:`\sum e_i^T Y_{ij} e_j` for one symmetric matrix of each of the :data:`PAIRS` of columns."""
    found = []
    for (i, j), (xx, yy, zz, xy, xz, yz) in zip(PAIRS, tensors, strict=True):
        rotated = [dot([xx, xy, xz], frame[i]), dot([xy, yy, yz], frame[i]), dot([xz, yz, zz], frame[i])]
        found.append(dot(rotated, frame[j]))
    return functools.reduce(torch.add, found)


def dot(a: Planes, b: Planes) -> Float[Tensor, "n c"]:
    """The scalar product."""
    return torch.addcmul(torch.addcmul(a[0] * b[0], a[1], b[1]), a[2], b[2])


def flattened(frame: Frame) -> Float[Tensor, "n c 9"]:
    """The frames as elements of SO(3): matrices with these columns, flattened row by row."""
    return torch.stack([column[d] for d in range(3) for column in frame], dim=-1)


def _direction(vector: Planes, floor: Float[Tensor, " c"]) -> list[Float[Tensor, "n c"]]:
    factor = direction_factor(dot(vector, vector), floor)
    return [coordinate * factor for coordinate in vector]
