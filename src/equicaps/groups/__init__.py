"""Groups: the law, the action, the weighted mean M and the distance δ behind one differentiable interface."""

from equicaps.groups.base import Group
from equicaps.groups.gl import GL
from equicaps.groups.karcher import karcher_mean
from equicaps.groups.product import Product
from equicaps.groups.scale import Scale
from equicaps.groups.se2 import SE2
from equicaps.groups.se3 import SE3
from equicaps.groups.so2 import SO2
from equicaps.groups.so3 import SO3
from equicaps.groups.translation import Translation

__all__ = ["GL", "SE2", "SE3", "SO2", "SO3", "Group", "Product", "Scale", "Translation", "karcher_mean"]
