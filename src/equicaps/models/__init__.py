"""Networks, each with its config in one file."""

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
