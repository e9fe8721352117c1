"""The one road from images as people have them to tensors as a network takes them.

Every step commutes with quarter turns, for every size: a rotated image gives the rotated result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, Union

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from numpy.typing import NDArray
from torch import Tensor

from equicaps.images.background import Background, as_known, on_black_or_white
from equicaps.images.resizing import as_floats, resized
from equicaps.images.stored import StoredImages
from equicaps.models.sizes import pad_to

if TYPE_CHECKING:
    from PIL.Image import Image

ImageLike: TypeAlias = Union[str, Path, bytes, "Image", NDArray[Any], Tensor, StoredImages]
"""The path or content of a file, a Pillow image, an array or a tensor; arrays and tensors may hold a batch, as do the
images of a folder."""

Images: TypeAlias = ImageLike | Sequence[ImageLike]

GREY = (0.299, 0.587, 0.114)
"""The weights of red, green and blue in the perceived brightness (ITU-R BT.601)."""


@dataclass(frozen=True)
class ImageFormat:
    """The format of the images that a network takes.

    Attributes:
        channels: 1 for grey, 3 for colour.
        size: the side of the network's input.
        frame: the side to which images are resized before they are padded to ``size``.
        background: the only background that the network knows; images with the opposite one are inverted. None if it
            knows several.
    """

    channels: int
    size: int
    frame: int
    background: Background | None = None


class Prepared(NamedTuple):
    """Images in a network's format, and which of them were inverted."""

    images: Float[Tensor, "n channels size size"]
    inverted: Bool[Tensor, " n"]


def prepare(images: Images, to: ImageFormat) -> Float[Tensor, "n {to.channels} {to.size} {to.size}"]:
    """The images that :func:`prepared` returns."""
    return prepared(images, to).images


def prepared(images: Images, to: ImageFormat) -> Prepared:
    """Convert images of any kind, size and colour to a network's format.

    A tensor that already has the network's number of channels and its size is only inverted if necessary; everything
    else, files of that size too, goes through :func:`fit`.
    """
    images = images[:] if isinstance(images, StoredImages) else images
    if isinstance(images, Tensor) and images.ndim == 4 and tuple(images.shape[1:]) == (to.channels, to.size, to.size):
        return Prepared(*as_known(read_batch(images), to.background))
    fitted = [_fitted(batch, to) for batch in _each(images)]
    return Prepared(*map(torch.cat, zip(*fitted, strict=True)))


def read(images: Images) -> list[Float[Tensor, "_ _ _ _"]]:
    """Convert images to batches of floats in [0, 1] of shape (n, channels, height, width), one per entry of a sequence.

    Tensors and arrays have shape (height, width), (n, height, width) or (n, channels, height, width); in arrays the 3
    or 4 channels may also come last. Integers are divided by the largest value of their type. Transparent parts become
    black, or white around dark objects.
    """
    return list(map(as_floats, _each(images)))


def _each(images: Images) -> Iterator[Shaped[Tensor, "_ _ _ _"]]:
    """The batches of :func:`read`, one after the other, but bytes are still bytes."""
    if isinstance(images, StoredImages):
        yield images[:]
    elif isinstance(images, Tensor):
        yield _from_tensor(images)
    elif isinstance(images, np.ndarray):
        yield _from_array(images)
    elif isinstance(images, str | Path | bytes) or _is_picture(images):
        yield _from_picture(images).unsqueeze(0)
    elif isinstance(images, list | tuple):
        if not images:
            raise ValueError("images: the sequence is empty; give at least one image.")
        for image in images:
            yield from _each(image)
    else:
        raise TypeError(
            "images must be a torch.Tensor, a numpy array, a Pillow image, a file's path or bytes, or a sequence of "
            f"those, but is {type(images).__name__}."
        )


def read_batch(images: Images) -> Float[Tensor, "n channels height width"]:
    """Like :func:`read`, for images that have one size and one number of channels: all in a single batch."""
    batches = read(images)
    shapes = {tuple(batch.shape[1:]) for batch in batches}
    if len(shapes) > 1:
        found = ", ".join(map(str, sorted(shapes)))
        raise ValueError(
            f"images must share one shape (channels, height, width) to form a batch, but have {found}; pass them one "
            "by one."
        )
    return torch.cat(batches)


def fit(
    images: Shaped[Tensor, "n _channels _height _width"], to: ImageFormat
) -> Float[Tensor, "n {to.channels} {to.size} {to.size}"]:
    """Invert if necessary, pad to a square, resize to the frame, convert the channels and pad to the network's size.

    Images, of bytes or of floats in [0, 1], are not resampled if they have the frame's size. Padding has the colour of
    each image's own background.
    """
    return _fitted(images, to).images


def _fitted(images: Shaped[Tensor, "n _channels _height _width"], to: ImageFormat) -> Prepared:
    """Like :func:`fit`, with what was inverted."""
    seen, inverted = as_known(images, to.background)
    return Prepared(pad_to(with_channels(resized(seen, to.frame), to.channels), to.size, to.size), inverted)


def square(images: Float[Tensor, "n channels height width"]) -> Float[Tensor, "n channels side side"]:
    """Pad images with their own background to squares around their centre; commutes with quarter turns."""
    side = max(images.shape[-2:])
    return pad_to(images, side, side)


def with_channels(
    images: Float[Tensor, "n _c height width"], channels: int
) -> Float[Tensor, "n {channels} height width"]:
    """Convert grey images to colour, or colour images to grey."""
    if images.shape[1] == channels:
        return images
    if channels == 3:
        return images.expand(-1, 3, -1, -1)
    return torch.einsum("nchw,c->nhw", images, images.new_tensor(GREY)).unsqueeze(1)


def _from_tensor(images: Tensor) -> Tensor:
    if images.device.type == "mps":  # which has no float64
        images = images.cpu()
    if images.dtype in (torch.bool, torch.float16, torch.bfloat16):
        images = images.float()
    elif images.dtype == torch.uint16:
        images = as_floats(images)
    if images.dtype not in (torch.uint8, torch.float32, torch.float64):
        raise TypeError(f"images must be bytes (uint8), uint16 or floats in [0, 1], but have dtype {images.dtype}.")
    if images.ndim not in (2, 3, 4) or (images.ndim == 4 and images.shape[1] not in (1, 3, 4)):
        raise ValueError(
            "images must have shape (height, width), (n, height, width) or (n, channels, height, width) with 1, 3 or 4 "
            f"channels, but have {tuple(images.shape)}."
        )
    if min(images.shape[-2:]) < 1:
        raise ValueError(f"images have no pixels: shape {tuple(images.shape)}.")
    if not images.isfinite().all():
        raise ValueError("images contain NaN or infinite pixels; clean them first, for instance with torch.nan_to_num.")
    if images.ndim == 2:
        images = images.unsqueeze(0)
    images = images.unsqueeze(1) if images.ndim == 3 else images
    return on_black_or_white(images) if images.shape[1] == 4 else images


def _from_array(images: NDArray[Any]) -> Tensor:
    last = images.shape[-1] if images.ndim in (3, 4) else 0
    if last in (3, 4) and not (images.ndim == 4 and images.shape[1] in (1, 3, 4)):  # channels last
        images = np.moveaxis(images, -1, -3)
        images = images[None] if images.ndim == 3 else images
    # A copy in the machine's byte order: torch warns about read-only arrays, such as those of Pillow images.
    return _from_tensor(torch.from_numpy(images.astype(images.dtype.newbyteorder("="), order="C")))


def _is_picture(image: object) -> bool:
    """Whether ``image`` is a Pillow image, found out without importing Pillow."""
    return type(image).__module__.startswith("PIL.")


def _from_picture(image: Any) -> Tensor:
    from equicaps.images import decode

    return decode.pixels(image) if _is_picture(image) else decode.read_pixels(image)
