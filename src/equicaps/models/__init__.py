"""The networks; each is defined in one file together with its config."""

from equicaps.models.architecture import Architecture, PointArchitecture
from equicaps.models.network import PRESETS, GroupCapsNet
from equicaps.models.output import CapsOutput
from equicaps.models.paper import PaperConfig, PaperNet
from equicaps.models.point_network import POINT_PRESETS, PointCapsNet
from equicaps.models.points import PointsConfig, PointsNet
from equicaps.models.points_paper import PointsPaperConfig, PointsPaperNet
from equicaps.models.steerable import Block, SteerableConfig, SteerableNet

__all__ = [
    "POINT_PRESETS",
    "PRESETS",
    "Architecture",
    "Block",
    "CapsOutput",
    "GroupCapsNet",
    "PaperConfig",
    "PaperNet",
    "PointArchitecture",
    "PointCapsNet",
    "PointsConfig",
    "PointsNet",
    "PointsPaperConfig",
    "PointsPaperNet",
    "SteerableConfig",
    "SteerableNet",
]
