"""The group of rotations of space."""

import roma
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from equicaps.groups.base import Device, DType, Generator, Group
from equicaps.numerics import (
    at_most_one,
    dominant_projector,
    flatten_at_one,
    membership_tolerance,
    noise_floor,
    safe_normalize,
    weighted_sum,
)


class SO3(Group):
    r"""Rotations of space as 3x3 matrices, flattened row by row (Appendix B).

    M is the chordal mean of Moakher (2002): the rotation R that maximises :math:`\mathrm{tr}(R^T S)` for the weighted
    sum S. In unit quaternions that is :math:`q^T K(S) q` with K linear in S, so R belongs to the dominant eigenvector
    of a symmetric 4x4 matrix. Both conditions of Theorem 1 hold wherever that eigenvector is unique
    (:math:`\sigma_2 + \det(UV^T)\,\sigma_3 > 0`); where it is not, no rotation is nearest and the pose is undefined.
    Between both, M is a rotation times a factor that falls to 0, so it is a rotation up to rounding wherever that is 1.
    """

    dim, algebra_dim, point_dim = 9, 3, 3

    def identity(self, *shape: int, dtype: DType = None, device: Device = None) -> Float[Tensor, "*shape 9"]:
        """The unit matrix."""
        return torch.eye(3, dtype=dtype, device=device).flatten().expand(*shape, 9)

    def compose(self, g: Float[Tensor, "*#batch 9"], h: Float[Tensor, "*#batch 9"]) -> Float[Tensor, "*batch 9"]:
        """The matrix product."""
        return (_matrix(g) @ _matrix(h)).flatten(-2)

    def inverse(self, g: Float[Tensor, "*batch 9"]) -> Float[Tensor, "*batch 9"]:
        """The transpose."""
        return _matrix(g).mT.flatten(-2)

    def act(self, g: Float[Tensor, "*#batch 9"], points: Float[Tensor, "*#batch 3"]) -> Float[Tensor, "*batch 3"]:
        """Rotate points of space."""
        return (_matrix(g) @ points.unsqueeze(-1)).squeeze(-1)

    def mean(
        self, elements: Float[Tensor, "*#batch n 9"], weights: Float[Tensor, "*#batch n"]
    ) -> Float[Tensor, "*batch 9"]:
        """The weighted sum projected onto SO(3)."""
        weights = at_most_one(weights)
        S = safe_normalize(weighted_sum(elements, weights), noise_floor(weights))
        forms = _quaternion_forms(S)
        K = (S @ forms.mT).unflatten(-1, (4, 4))
        # Shifted to be positive semidefinite: the eigenvalues of K lie in [-√3, √3], since |S| is at most 1.
        projector, uniqueness = dominant_projector(3**0.5 * torch.eye(4, dtype=K.dtype, device=K.device) + K)
        return (projector.flatten(-2) @ forms) * uniqueness.unsqueeze(-1)

    def distance(self, g: Float[Tensor, "*#batch 9"], h: Float[Tensor, "*#batch 9"]) -> Float[Tensor, "*batch"]:
        """‖p - q‖, the Frobenius (chordal) distance."""
        return torch.linalg.vector_norm(g - h, dim=-1)

    def exp(self, algebra: Float[Tensor, "*batch 3"]) -> Float[Tensor, "*batch 9"]:
        """The rotation by a rotation vector."""
        return roma.rotvec_to_rotmat(algebra).flatten(-2)

    def log(self, g: Float[Tensor, "*batch 9"]) -> Float[Tensor, "*batch 3"]:
        """The rotation vector of length at most π; 0 for the undefined pose."""
        undefined = (g == 0).all(-1, keepdim=True)
        defined = torch.where(undefined, self.identity(dtype=g.dtype, device=g.device), g)
        return roma.rotmat_to_rotvec(_matrix(defined))

    def random(
        self, *shape: int, generator: Generator = None, dtype: DType = None, device: Device = None
    ) -> Float[Tensor, "*shape 9"]:
        """Uniform rotations."""
        dtype = dtype or torch.get_default_dtype()
        return roma.random_rotmat(shape, dtype=dtype, device=device, generator=generator).flatten(-2)

    def contains(self, g: Float[Tensor, "*batch 9"]) -> Bool[Tensor, "*batch"]:
        """Whether g is orthogonal with determinant 1."""
        matrix = _matrix(g)
        residual = matrix @ matrix.mT - torch.eye(3, dtype=g.dtype, device=g.device)
        orthogonal = residual.abs().amax((-2, -1)) <= membership_tolerance(g.dtype)
        return orthogonal & (torch.linalg.det(matrix) > 0)

    def presence(self, g: Float[Tensor, "*batch 9"]) -> Float[Tensor, "*batch"]:
        """The squared Frobenius norm over 3, flattened at 1."""
        return flatten_at_one(g.square().sum(-1) / 3)

    def __repr__(self) -> str:
        return "SO(3)"


def _matrix(g: Float[Tensor, "*batch 9"]) -> Float[Tensor, "*batch 3 3"]:
    return g.unflatten(-1, (3, 3))


def _quaternion_forms(like: Tensor) -> Float[Tensor, "16 9"]:
    """The constant F with R(q) = (q qᵀ) F, in the dtype and on the device of ``like``."""
    if torch.compiler.is_compiling():
        return _FORMS.to(like)
    key = (like.device, like.dtype)
    if key not in _FORMS_ON:
        _FORMS_ON[key] = _FORMS.to(like)
    return _FORMS_ON[key]


def _polarise() -> Float[Tensor, "16 9"]:
    """F from roma's quadratic map q -> R(q), by polarisation."""
    basis = torch.eye(4, dtype=torch.float64, device="cpu")
    squares = roma.unitquat_to_rotmat(basis)
    pairs = roma.unitquat_to_rotmat(basis[:, None] + basis[None, :])
    return ((pairs - squares[:, None] - squares[None, :]) / 2).flatten(-2).flatten(0, 1)


_FORMS = _polarise()
_FORMS_ON: dict[tuple[torch.device, torch.dtype], Tensor] = {}
