"""Group equivariant capsule networks: image classifiers that also report how the object is rotated.

An implementation of *Group Equivariant Capsule Networks* (Lenssen, Fey, Libuschewski, NeurIPS 2018), and networks that
build on it. ``docs/conventions.md`` defines axes, angles and the undefined pose; ``docs/guarantees.md`` says what is
exact, and what is not.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from equicaps import (
        data,
        errors,
        functional,
        groups,
        images,
        inference,
        losses,
        metrics,
        models,
        nn,
        testing,
        training,
    )
    from equicaps.inference import Canonicalizer, PointModel, PoseModel, load

__version__ = "0.2.0"

_FROM_INFERENCE = ("Canonicalizer", "PointModel", "PoseModel", "load")

__all__ = [
    "Canonicalizer",
    "PointModel",
    "PoseModel",
    "__version__",
    "data",
    "errors",
    "functional",
    "groups",
    "images",
    "inference",
    "load",
    "losses",
    "metrics",
    "models",
    "nn",
    "testing",
    "training",
]


def __dir__() -> list[str]:
    """List all public names, including those that have not been imported yet."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import a room or a name when it is first used, because everything imports torch, which takes seconds."""
    if name in _FROM_INFERENCE:
        return getattr(importlib.import_module("equicaps.inference"), name)
    if name in __all__:
        return importlib.import_module(f"equicaps.{name}")
    raise AttributeError(f"module 'equicaps' has no attribute {name!r}")
