"""Networks whose answers provably do not change when the input is turned, and which tell how it was turned.

An implementation of *Group Equivariant Capsule Networks* (Lenssen, Fey, Libuschewski, NeurIPS 2018) and what follows
from it. Conventions (axes, angles, the undefined pose) are on one page: ``docs/conventions.md``.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equicaps import functional, groups, nn, testing
    from equicaps.canonicalizer import Canonicalizer
    from equicaps.pretrained import load

__version__ = "0.1.0"

__all__ = ["Canonicalizer", "__version__", "functional", "groups", "load", "nn", "testing"]


def __dir__() -> list[str]:
    """Also what has not been asked for yet."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Everything brings torch with it, which takes seconds to import: only when it is asked for."""
    if name in ("functional", "groups", "nn", "testing"):
        return importlib.import_module(f"equicaps.{name}")
    if name == "load":
        from equicaps.pretrained import load

        return load
    if name == "Canonicalizer":
        from equicaps.canonicalizer import Canonicalizer

        return Canonicalizer
    raise AttributeError(f"module 'equicaps' has no attribute {name!r}")
