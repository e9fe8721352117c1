"""The group capsule layer (Algorithm 1)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_alike, check_count, check_floating
from equicaps.functional import Agreement, Routing, Sigma, Sigmoid, route
from equicaps.functional.routing import check_options
from equicaps.groups import Group
from equicaps.nn.trainable_sigma import TrainableSigma
from equicaps.numerics import full_precision


class GroupCapsules(nn.Module):
    r"""Algorithm 1 with trainable transformations: votes :math:`v_{ij} = p_i \circ t_{ij}`, then :func:`route`.

    Theorems 1 and 2, for every g in the group: poses move with the input, ``layer(g ∘ P, a).poses == g ∘ layer(P,
    a).poses``, and activations do not change. Layers can be stacked, since the property is transitive. It stops being
    exact where a mean is undefined and, in groups with ``mean_is_closed = False``, where a mean leaves the group.

    Args:
        group: the group of the poses.
        in_capsules: n, the number of input capsules.
        out_capsules: m, the number of output capsules.
        iterations: the number of routing iterations; 0 is the control without routing.
        sigma: σ and the initial values of its parameters, which are trained.
        agreement: see :func:`equicaps.functional.route`.
        device: where the parameters live.
        dtype: the precision of the parameters.
    """

    def __init__(
        self,
        group: Group,
        in_capsules: int,
        out_capsules: int,
        *,
        iterations: int = 2,
        sigma: Sigma = Sigmoid(),
        agreement: Agreement = "mean",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(group, Group):
            raise TypeError(f"GroupCapsules: `group` must be a Group such as SO2(), but is {group!r}.")
        check_count("GroupCapsules", "in_capsules", in_capsules)
        check_count("GroupCapsules", "out_capsules", out_capsules)
        check_options("GroupCapsules", iterations, sigma, agreement)
        self.group = group
        self.in_capsules = in_capsules
        self.out_capsules = out_capsules
        self.iterations = iterations
        self.agreement: Agreement = agreement
        transforms = torch.empty(out_capsules, in_capsules, group.algebra_dim, device=device, dtype=dtype)
        self.raw_transforms = nn.Parameter(transforms)
        self.trained_sigma = TrainableSigma(sigma, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new transformations, spread over the group around the identity, and reset σ."""
        nn.init.normal_(self.raw_transforms, std=1 / math.sqrt(self.group.algebra_dim))
        self.trained_sigma.reset_parameters()

    @property
    def sigma(self) -> Sigma:
        """σ with the current parameters."""
        return self.trained_sigma.value

    @property
    def transforms(self) -> Float[Tensor, "m n d"]:
        """The group elements :math:`t_{ij}`, exponentials of the free parameters."""
        return self.group.exp(self.raw_transforms)

    @full_precision
    def forward(self, poses: Float[Tensor, "*batch n d"], activations: Float[Tensor, "*batch n"]) -> Routing:
        """Poses and activations of n input capsules to those of m output capsules."""
        self._check(poses, activations)
        votes = self.group.compose(poses.unsqueeze(-3), self.transforms)
        return route(
            self.group, votes, activations, iterations=self.iterations, sigma=self.sigma, agreement=self.agreement
        )

    def _check(self, poses: Tensor, activations: Tensor) -> None:
        n, d = self.in_capsules, self.group.dim
        check_floating("GroupCapsules", "poses", poses)
        check_floating("GroupCapsules", "activations", activations)
        check_alike(
            "GroupCapsules", {"poses": poses, "activations": activations, "the layer's parameters": self.raw_transforms}
        )
        if poses.ndim < 2 or poses.shape[-2:] != (n, d):
            raise ValueError(
                f"GroupCapsules: `poses` must have shape (*batch, {n}, {d}) for {n} input capsules on {self.group!r}, "
                f"but has shape {tuple(poses.shape)}."
            )
        if activations.shape != poses.shape[:-1]:
            raise ValueError(
                f"GroupCapsules: `activations` must have shape {tuple(poses.shape[:-1])}, one for each pose, "
                f"but has shape {tuple(activations.shape)}."
            )

    def extra_repr(self) -> str:
        """The mathematical signature."""
        return (
            f"{self.in_capsules} -> {self.out_capsules} capsules on {self.group!r}, iterations={self.iterations}, "
            f"agreement={self.agreement!r}"
        )
