"""Slow and obvious implementations to compare with: groups as matrices, Algorithm 1 as loops."""

import math

import numpy as np
import torch
from torch import Tensor

from equicaps.groups import GL, SE2, SE3, SO2, SO3, Group, Product, Scale, Translation

ALL_GROUPS: tuple[Group, ...] = (
    SO2(),
    SO3(),
    Translation(3),
    GL(2),
    GL(3),
    SE2(),
    SE3(translation_weight=0.5),
    Scale(),
    Product(SO2(), Translation(2)),
    Product(SE2(), Scale(), weights=(2.0, 0.5)),
)
CLOSED_GROUPS = tuple(group for group in ALL_GROUPS if group.mean_is_closed)


def blocks(*matrices: Tensor) -> Tensor:
    """Block-diagonal matrices over a batch."""
    size = sum(matrix.shape[-1] for matrix in matrices)
    out = matrices[0].new_zeros(*matrices[0].shape[:-2], size, size)
    start = 0
    for matrix in matrices:
        stop = start + matrix.shape[-1]
        out[..., start:stop, start:stop] = matrix
        start = stop
    return out


def affine(linear: Tensor, shift: Tensor) -> Tensor:
    """The matrix of x -> linear x + shift in homogeneous coordinates."""
    n = shift.shape[-1]
    out = torch.eye(n + 1, dtype=shift.dtype).repeat(*shift.shape[:-1], 1, 1)
    out[..., :n, :n] = linear
    out[..., :n, n] = shift
    return out


def to_matrix(group: Group, g: Tensor) -> Tensor:
    """A faithful matrix representation: the group law becomes the matrix product."""
    if isinstance(group, SO2):
        x, y = g[..., 0], g[..., 1]
        return torch.stack((torch.stack((x, -y), -1), torch.stack((y, x), -1)), -2)
    if isinstance(group, SO3 | GL):
        return g.reshape(*g.shape[:-1], group.point_dim, group.point_dim)
    if isinstance(group, Translation):
        return affine(torch.eye(group.dim, dtype=g.dtype), g)
    if isinstance(group, Scale):
        return g[..., None]
    if isinstance(group, SE2):
        return affine(to_matrix(SO2(), g[..., :2]), g[..., 2:])
    if isinstance(group, SE3):
        return affine(to_matrix(SO3(), g[..., :9]), g[..., 9:])
    assert isinstance(group, Product)
    parts = torch.split(g, [factor.dim for factor in group.factors], -1)
    return blocks(*(to_matrix(factor, part) for factor, part in zip(group.factors, parts, strict=True)))


def hat(group: Group, a: Tensor) -> Tensor:
    """The Lie algebra vector as a matrix whose matrix exponential is ``to_matrix(exp(a))``."""
    if isinstance(group, SO2):
        zero = torch.zeros_like(a[..., 0])
        return torch.stack((torch.stack((zero, -a[..., 0]), -1), torch.stack((a[..., 0], zero), -1)), -2)
    if isinstance(group, SO3):
        x, y, z = a.unbind(-1)
        zero = torch.zeros_like(x)
        rows = ((zero, -z, y), (z, zero, -x), (-y, x, zero))
        return torch.stack([torch.stack(row, -1) for row in rows], -2)
    if isinstance(group, GL):
        return a.reshape(*a.shape[:-1], group.point_dim, group.point_dim)
    if isinstance(group, Translation):
        return _nilpotent(torch.zeros(group.dim, group.dim, dtype=a.dtype), a)
    if isinstance(group, Scale):
        return a[..., None]
    if isinstance(group, SE2):
        return _nilpotent(hat(SO2(), a[..., :1]), a[..., 1:])
    if isinstance(group, SE3):
        return _nilpotent(hat(SO3(), a[..., :3]), a[..., 3:])
    assert isinstance(group, Product)
    parts = torch.split(a, [factor.algebra_dim for factor in group.factors], -1)
    return blocks(*(hat(factor, part) for factor, part in zip(group.factors, parts, strict=True)))


def _nilpotent(linear: Tensor, shift: Tensor) -> Tensor:
    out = affine(linear, shift)
    out[..., -1, -1] = 0
    return out


def assert_matches_the_matrix_group(group: Group, shape: tuple[int, ...], dtype: torch.dtype, **tolerance) -> None:
    """compose, inverse, identity and exp are the matrix product, inverse, identity and exponential."""
    g, h = group.random(*shape, dtype=dtype), group.random(*shape, dtype=dtype)
    G, H = to_matrix(group, g), to_matrix(group, h)
    assert not torch.allclose(G @ H, H @ G) or group_is_abelian(group), "the sample cannot distinguish gh from hg"
    torch.testing.assert_close(to_matrix(group, group.compose(g, h)), G @ H, **tolerance)
    torch.testing.assert_close(to_matrix(group, group.inverse(g)), torch.linalg.inv(G), **tolerance)
    unit = torch.eye(G.shape[-1], dtype=dtype).expand_as(G)
    torch.testing.assert_close(to_matrix(group, group.identity(*shape, dtype=dtype)), unit)
    a = torch.randn(*shape, group.algebra_dim, dtype=dtype)
    torch.testing.assert_close(to_matrix(group, group.exp(a)), torch.linalg.matrix_exp(hat(group, a)), **tolerance)


def group_is_abelian(group: Group) -> bool:
    if isinstance(group, Product):
        return all(group_is_abelian(factor) for factor in group.factors)
    return isinstance(group, SO2 | Translation | Scale) or group == GL(1)


# Algorithm 1 in plain loops, for SO(2) and R^n, whose M and δ are short.


def so2_mean(votes, weights):
    x = sum(w * v[0] for v, w in zip(votes, weights, strict=True))
    y = sum(w * v[1] for v, w in zip(votes, weights, strict=True))
    return [x / math.hypot(x, y), y / math.hypot(x, y)]


def so2_distance(p, q):
    return (1 - p[0] * q[0] - p[1] * q[1]) / 2


def translation_mean(votes, weights):
    return [sum(w * v[k] for v, w in zip(votes, weights, strict=True)) / sum(weights) for k in range(len(votes[0]))]


def translation_distance(p, q):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))


def algorithm_1(mean, distance, sigma, poses, transforms, activations, compose, iterations):
    """The poses, activations and weights of the output capsules, line by line as in the paper."""
    out_poses, out_activations, out_weights = [], [], []
    for row in transforms:
        votes = [compose(p, t) for p, t in zip(poses, row, strict=True)]
        weights = list(activations)
        pose = mean(votes, weights)
        for _ in range(iterations):
            weights = [sigma(-distance(pose, v)) * a for v, a in zip(votes, activations, strict=True)]
            pose = mean(votes, weights)
        agreement = sigma(-sum(distance(pose, v) for v in votes) / len(votes))
        out_poses.append(pose)
        out_activations.append(agreement)
        out_weights.append(weights)
    return np.array(out_poses), np.array(out_activations), np.array(out_weights)
