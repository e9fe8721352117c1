"""One network class for all presets."""

import warnings
from dataclasses import replace
from typing import get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_choice, check_images, check_values
from equicaps.functional import Capsules
from equicaps.functional.steerable import Mirror
from equicaps.models.decoder import Decoder
from equicaps.models.output import CapsOutput
from equicaps.models.paper import PaperConfig, PaperNet
from equicaps.models.sizes import check_size, pad_to_legal
from equicaps.models.steerable import SteerableConfig, SteerableNet

PRESETS: dict[str, tuple[type[PaperConfig] | type[SteerableConfig], dict[str, int | str]]] = {
    "steerable": (SteerableConfig, {}),
    "steerable_capsules": (SteerableConfig, {"features": False, "in_order": 2}),
    "steerable_cnn": (SteerableConfig, {"poses": False}),
    "paper": (PaperConfig, {}),
    "capsules_only": (PaperConfig, {"features": False}),
    "plain_cnn": (PaperConfig, {"poses": False}),
    "paper_gaussian": (PaperConfig, {"gradients": "gaussian"}),
    "paper_pooled": (PaperConfig, {"pool_by_agreement": True}),
    "paper_iterated": (PaperConfig, {"iterations": 3}),
}
"""The config of each preset: the steerable and the paper's network, each also without features and without poses; and
the paper's with rounder first poses, with pooling by agreement, and with three routing iterations."""
MIRRORED = ("steerable", "steerable_capsules")
"""The presets that can ignore whether an image is mirrored."""
WIDER = tuple(replace(b, capsules=n) for b, n in zip(SteerableConfig.blocks, (16, 24, 64, 108), strict=True))
"""Their layers if they do, which have about as many parameters as before: more capsules where they cost least time."""


def check_preset(name: str, mirror: Mirror) -> None:
    """Raise unless there is such a preset and, if ``mirror`` is "ignore", it can ignore mirroring."""
    if name not in PRESETS:
        raise ValueError(f"unknown preset {name!r}; choose one of {', '.join(map(repr, PRESETS))}.")
    check_choice("mirror", mirror, get_args(Mirror))
    if mirror == "ignore" and name not in MIRRORED:
        raise ValueError(f"only {' and '.join(map(repr, MIRRORED))} can ignore mirroring, but the preset is {name!r}.")


class GroupCapsNet(nn.Module):
    """Maps images to class scores, agreements and poses, such that rotating an image rotates only its poses.

    This is exact up to rounding for rotations by multiples of 90 degrees and approximate in between. In float32,
    rounding changes the scores of trained networks by less than 1e-4 (``equicaps.metrics.exactness`` measures it). See
    ``docs/steerable.md``; with :attr:`ignores_mirror`, mirroring an image likewise mirrors only its poses.

    Args:
        body: the part that maps images to class capsules.
        image_size: the side to which images are brought before they reach the network, and of the decoder's images.
        pad: whether to pad images of other sizes with zeros instead of refusing them.
        decoder: whether to reconstruct the images.
    """

    def __init__(
        self, body: PaperNet | SteerableNet, *, image_size: int = 32, pad: bool = False, decoder: bool = False
    ) -> None:
        super().__init__()
        self.body = body
        self.pad = pad
        self.image_size = image_size
        self._warned = False  # the warning about pixels out of range is given once
        config = body.config
        if not pad:
            check_size(image_size, image_size, config.grid)
        size = (image_size, image_size)
        masked = isinstance(body, PaperNet) and config.features  # scores that are agreements are no probabilities
        self.decoder = Decoder(config.num_classes, config.in_channels, size, masked=masked) if decoder else None

    @classmethod
    def from_preset(
        cls, name: str, *, num_classes: int = 10, in_channels: int = 1, image_size: int = 32, pad: bool = False,
        decoder: bool = False, mirror: Mirror = "distinguish",
    ) -> "GroupCapsNet":  # fmt: skip
        """Build the network of a preset, one of :data:`PRESETS`; with ``mirror="ignore"``, from wider layers."""
        check_preset(name, mirror)
        make, options = PRESETS[name]
        wider = {"mirror": mirror, "blocks": WIDER} if mirror == "ignore" else {}
        config = make(num_classes=num_classes, in_channels=in_channels, **options, **wider)  # type: ignore[arg-type] # options of its own
        body = SteerableNet(config) if isinstance(config, SteerableConfig) else PaperNet(config)
        return cls(body, image_size=image_size, pad=pad, decoder=decoder)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """The class capsules of a batch of images in [0, 1], with a reconstruction if there is a decoder."""
        return self._decoded(self.classify(images))

    def classify(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """The class capsules without a reconstruction."""
        output: CapsOutput = self.body(self.prepare(images))
        return output

    @property
    def needs_calibration(self) -> bool:
        """Whether a new network of this kind learns better after :meth:`calibrate`, as the paper's does."""
        return isinstance(self.body, PaperNet) and self.body.config.poses

    @property
    def ignores_mirror(self) -> bool:
        """Whether mirroring an image changes nothing but its poses, (x, y) to (-x, y), exactly up to rounding."""
        return isinstance(self.body, SteerableNet) and self.body.config.mirror == "ignore"

    def calibrate(self, images: Float[Tensor, "batch channels height width"]) -> None:
        """Prepare new parameters for images like these, before the first step of a training and never again.

        The paper's network sets its σ; others need no preparation.
        """
        if isinstance(self.body, PaperNet):
            self.body.calibrate(self.prepare(images))

    def explain(self, images: Float[Tensor, "batch channels height width"]) -> tuple[CapsOutput, list[Capsules]]:
        """The class capsules and the capsules after every layer, computed in one pass."""
        ready = self.prepare(images)
        capsules = self.body.capsules(ready)
        return self._decoded(self.body.answer(ready, capsules)), capsules

    def capsules(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """The capsules after every layer, for figures and audits."""
        return self.body.capsules(self.prepare(images))

    def parameter_counts(self) -> tuple[int, int]:
        """The numbers of parameters of the body and of the decoder (0 without one), which predictions do not need."""
        decoder = () if self.decoder is None else self.decoder.parameters()
        return sum(p.numel() for p in self.body.parameters()), sum(p.numel() for p in decoder)

    def _decoded(self, output: CapsOutput) -> CapsOutput:
        return output if self.decoder is None else output._replace(reconstruction=self.decoder(output))

    def prepare(self, images: Tensor) -> Tensor:
        """Check the images and, with ``pad``, pad them to a legal size."""
        config = self.body.config
        check_images(images, config.in_channels, next(self.parameters()).dtype)
        if not (torch.compiler.is_compiling() or images.is_meta):  # there are no values yet
            concern = check_values(images)
            if concern and not self._warned:
                self._warned = True
                warnings.warn(concern, stacklevel=2)
        if self.pad:
            return pad_to_legal(images, config.grid)
        if tuple(images.shape[-2:]) != (self.image_size, self.image_size):  # the constructor has checked that one
            check_size(images.shape[-2], images.shape[-1], config.grid)
        return images
