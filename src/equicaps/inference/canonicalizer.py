"""Canonicalization by a trained model, which makes any backbone invariant or equivariant."""

import copy
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps.images import rotate
from equicaps.images.preparation import Images, read_batch, square
from equicaps.inference.model import PoseModel

Returns = Literal["invariant", "maps", "vectors"]


class Upright(NamedTuple):
    """Images rotated upright, and the angle that each had before (degrees counter-clockwise, 0 without a pose)."""

    images: Float[Tensor, "n channels side side"]
    angles: Float[Tensor, " n"]


class Canonicalizer(nn.Module):
    r"""Rotates images upright, applies any backbone to them, and rotates its answer back.

    With the pose :math:`g(x)` that the model predicts and a backbone F,

    .. math:: \Phi(x) = g(x) \cdot F(g(x)^{-1} x)

    is equivariant, :math:`\Phi(h x) = h\,\Phi(x)`, and :math:`F(g(x)^{-1} x)` alone is invariant, whatever F does:
    exactly for quarter turns (up to rounding), and approximately in between, as far as the poses and the interpolation
    are accurate. Images without a pose are not rotated, so for them neither claim holds. No gradient flows through the
    pose: gradients reach the backbone and the images, but not the model.

    Without a backbone, the module returns the upright images and their angles (:class:`Upright`).

    Args:
        model: predicts the poses. The module keeps a frozen copy of it, always in eval mode.
        backbone: any function of a batch of square images.
        returns: what the backbone returns. ``"invariant"``: labels, features and the like, which are passed on
            unchanged; ``"maps"``: square maps (n, channels, side, side) such as segmentations, which are rotated back;
            ``"vectors"``: vectors in the plane, x right and y up, in the last axis (n, ..., 2), which are rotated back.
    """

    def __init__(
        self, model: PoseModel, backbone: Callable[[Tensor], Any] | None = None, returns: Returns = "invariant"
    ) -> None:
        super().__init__()
        if returns not in ("invariant", "maps", "vectors"):
            raise ValueError(f"Canonicalizer: returns must be 'invariant', 'maps' or 'vectors', but is {returns!r}.")
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.backbone = backbone
        self.returns = returns

    def train(self, mode: bool = True) -> "Canonicalizer":
        """Set the backbone's mode; the model stays in eval mode."""
        super().train(mode)
        self.model.eval()
        return self

    def forward(self, images: Images) -> Any:
        """The backbone's answer, rotated back if necessary, or :class:`Upright` without a backbone."""
        canonical = self.upright(images)
        if self.backbone is None:
            return canonical
        answer = self.backbone(canonical.images)
        return answer if self.returns == "invariant" else self.back(answer, canonical.angles)

    def upright(self, images: Images) -> Upright:
        """Pad images to squares and rotate them upright; takes what :meth:`PoseModel.predict` takes, of one size."""
        originals = read_batch(images)
        angles = self.model.predict(originals.detach()).angles.nan_to_num(0.0).to(originals)
        return Upright(rotate(square(originals), -angles), angles)

    def back(self, answer: Tensor, angles: Float[Tensor, " n"]) -> Tensor:
        """Rotate the maps or vectors of upright images back to the orientation of the original images."""
        if not isinstance(answer, Tensor) or len(answer) != len(angles):
            found = f"shape {tuple(answer.shape)}" if isinstance(answer, Tensor) else type(answer).__name__
            raise ValueError(
                f"Canonicalizer: the backbone must return a tensor with one entry for each of {len(angles)} images, "
                f"but returned {found}; use returns='invariant' for any other answer."
            )
        if self.returns == "vectors":
            if answer.shape[-1] != 2:
                raise ValueError(
                    "Canonicalizer: vectors must have shape (n, ..., 2), but the backbone returned shape "
                    f"{tuple(answer.shape)}."
                )
            return _rotate_vectors(answer, angles)
        if answer.ndim != 4 or answer.shape[-1] != answer.shape[-2]:
            raise ValueError(
                "Canonicalizer: maps must have shape (n, channels, side, side), but the backbone returned shape "
                f"{tuple(answer.shape)}."
            )
        return rotate_maps(answer, angles)


def rotate_maps(maps: Tensor, degrees: Float[Tensor, " n"]) -> Tensor:
    """Like :func:`equicaps.images.rotate`, but quarter turns come last: the steps of rotating upright, reversed."""
    quarters = torch.round(degrees / 90)
    interpolated = rotate(maps, degrees - 90 * quarters)
    return rotate(interpolated, 90 * quarters)


def _rotate_vectors(vectors: Tensor, degrees: Tensor) -> Tensor:
    angle = torch.deg2rad(degrees).to(vectors.dtype).reshape(-1, *(1,) * (vectors.ndim - 2))
    cosine, sine = torch.cos(angle), torch.sin(angle)
    x, y = vectors.unbind(-1)
    return torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)
