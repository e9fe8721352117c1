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
    """List the lazily imported groups too, so that the API pages and completion find them."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Import ``SO3`` and ``SE3`` on first use: they need roma, which spends two seconds importing torch's compiler."""
    if name == "SO3":
        from equicaps.groups.so3 import SO3

        return SO3
    if name == "SE3":
        from equicaps.groups.se3 import SE3

        return SE3
    raise AttributeError(f"module 'equicaps.groups' has no attribute {name!r}")
