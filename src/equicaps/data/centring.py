"""The place and the size of a shape, which its class does not depend on."""

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data.surfaces import triangle_areas


def centred(shape: Float[Tensor, "n *corners 3"]) -> Float[Tensor, "n *corners 3"]:
    r"""The shape with its centre at the origin and its farthest corner or point at distance 1.

    The centre is that of the area of triangles, or the mean of points. So with a rotation R, a shift t and a scale s,
    centred(s R x + t) = R centred(x), up to rounding, and it does not matter how a surface is divided into triangles.
    A shape without extent is only moved; what is too large for its dtype becomes infinite or NaN.

    Args:
        shape: triangles of shape (n, 3, 3) or points of shape (n, 3), at least one.
    """
    around = shape - shape.reshape(-1, 3).mean(0)  # first: far from the origin, areas would be lost to rounding
    largest = around.abs().max()
    if not 0 < largest < torch.inf:
        return around
    around = around / largest  # squares neither overflow nor vanish
    areas = triangle_areas(around).to(around) if around.ndim == 3 else around.new_zeros(1)
    if areas.sum() > 0:
        around = around - areas @ around.mean(1) / areas.sum()
    return around / torch.linalg.vector_norm(around, dim=-1).max()
