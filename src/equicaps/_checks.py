"""Checks of arguments, whose errors say what was expected, what came, and what to do.

Apart from :func:`check_values` they look only at shapes, dtypes and devices, never at the values of tensors, so that
``torch.export`` and ``torch.compile`` see straight-line code.
"""

import unicodedata
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.numerics import OUT_OF_RANGE


@runtime_checkable
class Sizes(Protocol):
    """The three trailing sizes of a group."""

    dim: int
    algebra_dim: int
    point_dim: int


def check_arguments(group: Sizes, method: str, names: Sequence[str], tensors: Sequence[Tensor]) -> None:
    """Raise unless a group method's arguments have the right trailing sizes and share dtype, device and batch."""
    where = f"{group!r}.{method}"
    arguments = dict(zip(names, tensors, strict=True))
    for name, tensor in arguments.items():
        check_floating(where, name, tensor)
    check_alike(where, arguments)
    if method == "mean":
        check_weighted_elements(group, where, *tensors)
        return
    element = (group.dim, "coordinates of a group element")
    kinds = {
        "act": (element, (group.point_dim, "coordinates of a point")),
        "exp": ((group.algebra_dim, "coordinates of a Lie algebra vector"),),
    }.get(method, (element,) * len(tensors))
    for (name, tensor), (size, kind) in zip(arguments.items(), kinds, strict=True):
        if tensor.ndim == 0 or tensor.shape[-1] != size:
            raise ValueError(
                f"{where}: `{name}` must have shape (*batch, {size}), the {kind} in one trailing axis, "
                f"but has shape {tuple(tensor.shape)}."
            )
    check_broadcast(where, {name: tuple(tensor.shape[:-1]) for name, tensor in arguments.items()})


def check_weighted_elements(group: Sizes, where: str, elements: Tensor, weights: Tensor) -> None:
    """Raise unless ``elements`` is (*batch, n, dim) with n > 0 and ``weights`` is (*batch, n)."""
    if elements.ndim < 2 or elements.shape[-1] != group.dim:
        raise ValueError(
            f"{where}: `elements` must have shape (*batch, n, {group.dim}), but has shape {tuple(elements.shape)}."
        )
    n = elements.shape[-2]
    if n == 0:
        raise ValueError(f"{where}: the mean of zero elements is not defined; pass at least one (axis -2 is empty).")
    if weights.ndim == 0 or weights.shape[-1] != n:
        raise ValueError(
            f"{where}: `weights` must have shape (*batch, {n}), one weight for each element along axis -2 of "
            f"`elements` {tuple(elements.shape)}, but has shape {tuple(weights.shape)}."
        )
    check_broadcast(where, {"elements": tuple(elements.shape[:-2]), "weights": tuple(weights.shape[:-1])})


def check_floating(where: str, name: str, tensor: object) -> None:
    """Raise unless ``tensor`` is a tensor of floating point numbers."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{where}: `{name}` must be a torch.Tensor, but is {type(tensor).__name__}; try torch.tensor(...)."
        )
    if tensor.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{where}: `{name}` must be float32 or float64, but has dtype {tensor.dtype}; convert it with `.float()`."
        )


def check_alike(where: str, tensors: dict[str, Tensor]) -> None:
    """Raise unless all tensors share one dtype and one device."""
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        found = ", ".join(f"`{name}` {tensor.dtype}" for name, tensor in tensors.items())
        raise TypeError(
            f"{where}: all arguments must have one dtype, but they have {found}; convert with `.to(dtype)`."
        )
    if len({tensor.device for tensor in tensors.values()}) > 1:
        found = ", ".join(f"`{name}` on {tensor.device}" for name, tensor in tensors.items())
        raise ValueError(f"{where}: all arguments must be on one device, but are {found}; move with `.to(device)`.")


def check_broadcast(where: str, batches: dict[str, tuple[int, ...]]) -> None:
    """Raise unless the batch shapes broadcast against each other."""
    first, *others = batches.values()
    # Lengths first: comparing a symbolic batch size with another axis would fix its value in an exported program.
    if all(len(other) == len(first) and other == first for other in others):
        return
    try:
        torch.broadcast_shapes(*batches.values())
    except RuntimeError:
        found = ", ".join(f"`{name}` {shape}" for name, shape in batches.items())
        raise ValueError(f"{where}: batch axes must broadcast against each other, but are {found}.") from None


def check_count(where: str, name: str, value: object) -> None:
    """Raise unless ``value`` is a whole number of at least 1."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{where}: `{name}` must be a whole number, but is {value!r} ({type(value).__name__}).")
    if value < 1:
        raise ValueError(f"{where}: `{name}` must be at least 1, but is {value}.")


def check_positive(where: str, name: str, value: object) -> None:
    """Raise unless ``value`` is a positive, finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"{where}: `{name}` must be a number, but is {value!r} ({type(value).__name__}).")
    if not 0 < value < float("inf"):
        raise ValueError(f"{where}: `{name}` must be positive and finite, but is {value!r}.")


def check_not_negative(name: str, value: int | float) -> None:
    """Raise unless ``value`` is finite and not negative."""
    if not 0 <= value < float("inf"):
        raise ValueError(f"{name} must be a number, 0 or more, but is {value}.")


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, choices))}, but is {value!r}.")


def check_parts(features: bool, poses: bool) -> None:
    """Raise if a network would have neither features nor poses."""
    if not (features or poses):
        raise ValueError("a network needs `features`, `poses` or both, but both are off.")


def check_window_grid(where: str, size: tuple[int, int], kernel_size: int, stride: int) -> None:
    """Raise unless windows cover height and width from edge to edge, so that a quarter turn maps windows to windows.

    Windows that leave a margin on one side only would lie elsewhere in the rotated image.
    """
    for name, length in zip(("height", "width"), size, strict=True):
        rest = (length - kernel_size) % stride
        if length >= kernel_size and rest == 0:
            continue
        lower, upper = (kernel_size,) * 2 if length < kernel_size else (length - rest, length - rest + stride)
        legal = f"{lower}" if lower == upper else f"{lower} and {upper}"
        raise ValueError(
            f"{where}: {name} {length} is not exact under quarter turns with windows of {kernel_size} and "
            f"stride {stride}: (size - {kernel_size}) must be a multiple of {stride}. "
            f"Nearest legal {'size' if lower == upper else 'sizes'}: {legal}; pad or crop the input."
        )


def check_images(images: object, channels: int, dtype: torch.dtype) -> None:
    """Raise unless ``images`` is a batch of images of the network's dtype and number of channels."""
    if not isinstance(images, Tensor):
        raise TypeError(f"images must be a torch.Tensor, but is {type(images).__name__}.")
    if not images.is_floating_point():
        raise TypeError(
            f"images must be floats in [0, 1], but have dtype {images.dtype}; for bytes use `images.float() / 255`."
        )
    if images.dtype != dtype and not torch.is_autocast_enabled(images.device.type):
        raise TypeError(
            f"images have dtype {images.dtype}, but the network computes in {dtype}: use `images.to({dtype})`, or "
            f"`network.to({images.dtype})`."
        )
    if images.ndim != 4 or images.shape[1] != channels:
        raise ValueError(f"images must have shape (batch, {channels}, height, width), but have {tuple(images.shape)}.")


def check_values(images: Float[Tensor, "batch channels height width"]) -> str | None:
    """Raise if pixels are not finite; return a warning if they leave [0, 1], otherwise None."""
    if not images.numel():
        return None
    low, high = images.aminmax()
    if not (low.isfinite() and high.isfinite()):
        raise ValueError("images contain NaN or infinite pixels; clean them first, for instance with torch.nan_to_num.")
    if low < -OUT_OF_RANGE or high > 1 + OUT_OF_RANGE:
        return f"images are expected in [0, 1], but range from {low:.3g} to {high:.3g}; they are used unchanged."
    return None


def printable(text: str) -> str:
    """The text with escapes for control characters and undecodable bytes: no name may send commands to a terminal."""
    return "".join(sign if is_printable(sign) else sign.encode("unicode_escape").decode() for sign in text)


def is_printable(text: str) -> bool:
    """Whether a name is free of control characters and undecodable bytes, which could send commands to a terminal."""
    return not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
