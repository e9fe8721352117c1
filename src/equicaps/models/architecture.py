"""Which network to build, as the plain values that configs and model files store."""

from dataclasses import dataclass

import torch

from equicaps.functional.steerable import Mirror
from equicaps.models.network import GroupCapsNet, check_preset
from equicaps.models.point_network import PointCapsNet, check_point_preset


@dataclass(frozen=True)
class Architecture:
    """The arguments of :meth:`GroupCapsNet.from_preset`."""

    preset: str = "steerable"
    num_classes: int = 10
    in_channels: int = 1
    image_size: int = 32
    pad: bool = False
    decoder: bool = False
    mirror: Mirror = "distinguish"

    def __post_init__(self) -> None:
        check_preset(self.preset, self.mirror)

    def build(self, seed: int) -> GroupCapsNet:
        """Build the network with seeded weights; torch's global generator stays unchanged."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return GroupCapsNet.from_preset(
                self.preset, num_classes=self.num_classes, in_channels=self.in_channels,
                image_size=self.image_size, pad=self.pad, decoder=self.decoder, mirror=self.mirror,
            )  # fmt: skip


@dataclass(frozen=True)
class PointArchitecture:
    """The arguments of :meth:`PointCapsNet.from_preset`."""

    preset: str = "points"
    num_classes: int = 10

    def __post_init__(self) -> None:
        check_point_preset(self.preset)

    def build(self, seed: int) -> PointCapsNet:
        """Build the network with seeded weights; torch's global generator stays unchanged."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return PointCapsNet.from_preset(self.preset, num_classes=self.num_classes)
