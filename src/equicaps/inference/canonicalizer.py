"""A trained capsule network as a canonicaliser: any backbone becomes invariant or equivariant."""

import copy
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps.images import rotate
from equicaps.images.prepare import read, square
from equicaps.inference.model import PoseModel

Returns = Literal["invariant", "maps", "vectors"]


class Upright(NamedTuple):
    """Images turned upright, and by how much each had been turned (degrees counter-clockwise, 0 without a pose)."""

    images: Float[Tensor, "n channels side side"]
    angles: Float[Tensor, " n"]


class Canonicalizer(nn.Module):
    r"""Turn images upright, let any backbone see them, and turn what it returns back.

    With the pose :math:`g(x)` that the model finds and a backbone F,

    .. math:: \Phi(x) = g(x) \cdot F(g(x)^{-1} x)

    is equivariant, :math:`\Phi(h x) = h\,\Phi(x)`, and :math:`F(g(x)^{-1} x)` alone is invariant, whatever F does:
    exactly for quarter turns (up to rounding), approximately in between, as good as the poses and the interpolation
    are. Images without a pose are not turned; their pose must not be expected to move. The pose is no function to learn
    through: gradients reach the backbone and the images, not the model.

    Without a backbone, the upright images and their angles come back (:class:`Upright`).

    Args:
        model: finds the poses; not trained.
        backbone: anything that takes a batch of square images.
        returns: what the backbone's answer is. ``"invariant"``: labels, features and the like, handed on as they are;
            ``"maps"``: square maps (n, channels, h, w), such as segmentations, turned back; ``"vectors"``: vectors in
            the plane, x right and y up, in the last axis (n, ..., 2), turned back.
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

    def forward(self, images: Tensor) -> Any:
        """The backbone's answer, or :class:`Upright` without one."""
        canonical = self.upright(images)
        if self.backbone is None:
            return canonical
        answer = self.backbone(canonical.images)
        return answer if self.returns == "invariant" else self.back(answer, canonical.angles)

    def upright(self, images: Tensor) -> Upright:
        """Images of any form that :meth:`PoseModel.predict` takes, padded to squares and turned upright."""
        [originals] = read(images)
        angles = self.model.predict(originals.detach()).angles.nan_to_num(0.0).to(originals)
        return Upright(rotate(square(originals), -angles), angles)

    def back(self, answer: Tensor, angles: Float[Tensor, " n"]) -> Tensor:
        """Maps or vectors of upright images as they are in the images as given."""
        if not isinstance(answer, Tensor) or len(answer) != len(angles):
            raise ValueError(f"Canonicalizer: a tensor with one entry for each of {len(angles)} images is needed.")
        if self.returns == "vectors":
            if answer.shape[-1] != 2:
                raise ValueError(
                    f"Canonicalizer: vectors have two coordinates, but the shape is {tuple(answer.shape)}."
                )
            return _turned_vectors(answer, angles)
        if answer.ndim != 4 or answer.shape[-1] != answer.shape[-2]:
            raise ValueError(f"Canonicalizer: maps have shape (n, channels, side, side), not {tuple(answer.shape)}.")
        return rotate_maps(answer, angles)


def rotate_maps(maps: Tensor, degrees: Float[Tensor, " n"]) -> Tensor:
    """Like :func:`equicaps.data.turn`, but the rest is interpolated first: the inverse order of setting upright."""
    quarters = torch.round(degrees / 90)
    rested = rotate(maps, degrees - 90 * quarters)
    return rotate(rested, 90 * quarters)


def _turned_vectors(vectors: Tensor, degrees: Tensor) -> Tensor:
    angle = torch.deg2rad(degrees).to(vectors.dtype).reshape(-1, *(1,) * (vectors.ndim - 2))
    cosine, sine = torch.cos(angle), torch.sin(angle)
    x, y = vectors.unbind(-1)
    return torch.stack((cosine * x - sine * y, sine * x + cosine * y), dim=-1)
