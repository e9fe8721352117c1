"""The networks; each is defined in one file together with its config."""

from equicaps.models.architecture import Architecture
from equicaps.models.network import PRESETS, GroupCapsNet
from equicaps.models.output import CapsOutput
from equicaps.models.paper import PaperConfig, PaperNet
from equicaps.models.steerable import Block, SteerableConfig, SteerableNet

__all__ = [
    "PRESETS",
    "Architecture",
    "Block",
    "CapsOutput",
    "GroupCapsNet",
    "PaperConfig",
    "PaperNet",
    "SteerableConfig",
    "SteerableNet",
]
