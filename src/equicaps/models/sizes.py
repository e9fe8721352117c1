"""Which image sizes are exact under 90 degrees, and how to get there."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def check_size(height: int, width: int, multiple: int, minimum: int) -> None:
    """Raise, naming the nearest legal sizes, unless both sides are multiples that the blocks divide evenly."""
    for name, size in (("height", height), ("width", width)):
        if size < minimum or size % multiple:
            below, above = size // multiple * multiple, -(-size // multiple) * multiple
            nearest = sorted({max(below, minimum), max(above, minimum)})
            raise ValueError(
                f"image {name} {size} does not fit: a quarter turn must map the network's blocks onto themselves, so "
                f"sides must be multiples of {multiple} and at least {minimum}; the nearest are {nearest}. Resize the "
                "images, or build the network with `pad=True` to pad them with zeros."
            )


def fit(
    images: Float[Tensor, "batch channels height width"], multiple: int, minimum: int
) -> Float[Tensor, "batch channels h w"]:
    """Pad with zeros, equally on all sides, to the next legal size.

    An odd side first grows by one through averaging neighbours, since padding one side only would not be symmetric.
    """
    for axis in (-2, -1):
        if images.shape[axis] % 2:
            kernel, padding = ((2, 1), (1, 0)) if axis == -2 else ((1, 2), (0, 1))
            images = F.avg_pool2d(images, kernel, stride=1, padding=padding)
    height, width = (max(-(-size // multiple) * multiple, minimum) for size in images.shape[-2:])
    vertical, horizontal = (height - images.shape[-2]) // 2, (width - images.shape[-1]) // 2
    return F.pad(images, (horizontal, horizontal, vertical, vertical))


def check_images(images: object, channels: int) -> None:
    """Raise unless ``images`` is a batch of floating point images with the right number of channels."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, but is {type(images).__name__}.")
    if not images.is_floating_point():
        raise TypeError(
            f"images must be floats in [0, 1], but have dtype {images.dtype}; for bytes use `images.float() / 255`."
        )
    if images.ndim != 4 or images.shape[1] != channels:
        raise ValueError(f"images must have shape (batch, {channels}, height, width), but have {tuple(images.shape)}.")


def check_values(images: Float[Tensor, "batch channels height width"]) -> str | None:
    """Raise on pixels that are not finite; what to say, if anything, about values outside [0, 1]."""
    if not images.numel():
        return None
    low, high = images.aminmax()
    if not (low.isfinite() and high.isfinite()):
        raise ValueError("images contain NaN or infinite pixels; clean them first, for instance with torch.nan_to_num.")
    if low < 0 or high > 1:
        return f"images are expected in [0, 1], but range from {low:.3g} to {high:.3g}; they are used as they are."
    return None
