"""Rigid motions of space."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.groups.so3 import SO3
from equicaps.groups.special_euclidean import SpecialEuclidean


class SE3(SpecialEuclidean):
    r"""Rigid motions of space as nine coordinates of the rotation matrix, then three of the translation.

    Both conditions of Theorem 1 hold wherever the rotation mean is defined. An algebra vector holds the rotation
    vector, then the velocity.
    """

    dim, algebra_dim, point_dim = 12, 6, 3
    _sizes = (9, 3)
    rotations = SO3()

    def exp(self, algebra: Float[Tensor, "*batch 6"]) -> Float[Tensor, "*batch 12"]:
        r"""(exp ω, V(ω) u) with :math:`V = \int_0^1 \exp(sω)\,ds`."""
        rotation_vector, velocity = algebra.split((3, 3), dim=-1)
        translation = (_left_jacobian(rotation_vector) @ velocity.unsqueeze(-1)).squeeze(-1)
        return torch.cat((self.rotations.exp(rotation_vector), translation), dim=-1)

    def log(self, g: Float[Tensor, "*batch 12"]) -> Float[Tensor, "*batch 6"]:
        """The rotation vector of length at most π and the velocity V(ω)⁻¹ t."""
        rotation, translation = g.split(self._sizes, dim=-1)
        rotation_vector = self.rotations.log(rotation)
        velocity = torch.linalg.solve_ex(_left_jacobian(rotation_vector), translation.unsqueeze(-1)).result.squeeze(-1)
        return torch.cat((rotation_vector, velocity), dim=-1)

    def __repr__(self) -> str:
        return "SE(3)" if self.translation_weight == 1 else f"SE(3)[λ={self.translation_weight:g}]"


def _left_jacobian(rotation_vector: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 3 3"]:
    r"""V(ω), a block of :math:`\exp \begin{pmatrix} [ω] & I \\ 0 & 0 \end{pmatrix}`; needs no case for small angles."""
    identity = torch.eye(3, dtype=rotation_vector.dtype, device=rotation_vector.device)
    cross = torch.linalg.cross(*torch.broadcast_tensors(rotation_vector.unsqueeze(-2), identity)).mT  # columns ω × e_k
    block = torch.cat((cross, identity.expand_as(cross)), dim=-1)
    return torch.linalg.matrix_exp(torch.cat((block, torch.zeros_like(block)), dim=-2))[..., :3, 3:]
