"""Groups: the law, the action, the weighted mean M and the distance δ behind one differentiable interface."""

from typing import TYPE_CHECKING, Any

from equicaps.groups.base import Group
from equicaps.groups.gl import GL
from equicaps.groups.karcher import karcher_mean
from equicaps.groups.product import Product
from equicaps.groups.scale import Scale
from equicaps.groups.se2 import SE2
from equicaps.groups.so2 import SO2
from equicaps.groups.translation import Translation

if TYPE_CHECKING:
    from equicaps.groups.se3 import SE3
    from equicaps.groups.so3 import SO3

__all__ = ["GL", "SE2", "SE3", "SO2", "SO3", "Group", "Product", "Scale", "Translation", "karcher_mean"]


def __dir__() -> list[str]:
    """Also what has not been asked for yet: the API pages list what is here."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """``SO3`` and ``SE3`` need roma, which imports torch's compiler for two seconds: only when they are asked for."""
    if name == "SO3":
        from equicaps.groups.so3 import SO3

        return SO3
    if name == "SE3":
        from equicaps.groups.se3 import SE3

        return SE3
    raise AttributeError(f"module 'equicaps.groups' has no attribute {name!r}")
