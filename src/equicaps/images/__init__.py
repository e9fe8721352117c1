"""Pixels and geometry: reading, preparing, rotating and measuring images, independently of data sets and networks."""

from equicaps.images.augmentation import ROTATED, TRANSLATED, UPRIGHT, Augmentation, Views
from equicaps.images.moments import (
    Centroid,
    PrincipalAxis,
    angle_difference,
    angle_distance,
    centroid,
    principal_axis,
)
from equicaps.images.preparation import ImageFormat, ImageLike, prepare, read, square
from equicaps.images.rotation import rotate

__all__ = [
    "ROTATED",
    "TRANSLATED",
    "UPRIGHT",
    "Augmentation",
    "Centroid",
    "ImageFormat",
    "ImageLike",
    "PrincipalAxis",
    "Views",
    "angle_difference",
    "angle_distance",
    "centroid",
    "prepare",
    "principal_axis",
    "read",
    "rotate",
    "square",
]
