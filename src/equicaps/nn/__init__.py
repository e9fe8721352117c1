"""Modules: parameters plus one functional call each."""

from equicaps.nn.batch_norm import BatchNorm2d
from equicaps.nn.group_capsules import GroupCapsules
from equicaps.nn.image_poses import ImagePoses
from equicaps.nn.kernels import HarmonicKernel, SplineKernel
from equicaps.nn.point_capsules import PointCapsules
from equicaps.nn.point_conv import PointConv
from equicaps.nn.point_frames import PointFrames
from equicaps.nn.pose_conv import PoseConv2d
from equicaps.nn.spatial_capsules import SpatialCapsules2d
from equicaps.nn.steerable_capsules import SteerableCapsules2d
from equicaps.nn.steerable_points import FirstPointCapsules, SteerablePointCapsules
from equicaps.nn.steered_capsules import SteeredCapsules
from equicaps.nn.transform_mlp import TransformGenerator, TransformLinear, TransformMLP

__all__ = [
    "BatchNorm2d",
    "FirstPointCapsules",
    "GroupCapsules",
    "HarmonicKernel",
    "ImagePoses",
    "PointCapsules",
    "PointConv",
    "PointFrames",
    "PoseConv2d",
    "SpatialCapsules2d",
    "SplineKernel",
    "SteerableCapsules2d",
    "SteerablePointCapsules",
    "SteeredCapsules",
    "TransformGenerator",
    "TransformLinear",
    "TransformMLP",
]
