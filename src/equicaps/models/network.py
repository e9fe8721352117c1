"""One network class for all presets."""

import warnings

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps._checks import check_images, check_values
from equicaps.functional import Capsules
from equicaps.models.decoder import Decoder
from equicaps.models.output import CapsOutput
from equicaps.models.paper import PaperConfig, PaperNet
from equicaps.models.sizes import check_size, pad_to_legal
from equicaps.models.steerable import SteerableConfig, SteerableNet

PRESETS: dict[str, tuple[type[PaperConfig] | type[SteerableConfig], dict[str, int]]] = {
    "steerable": (SteerableConfig, {}),
    "steerable_capsules": (SteerableConfig, {"features": False, "in_order": 2}),
    "steerable_cnn": (SteerableConfig, {"poses": False}),
    "paper": (PaperConfig, {}),
    "capsules_only": (PaperConfig, {"features": False}),
    "plain_cnn": (PaperConfig, {"poses": False}),
}
"""Name of a network -> its config: flagship and paper, each also as capsules alone and without poses."""


class GroupCapsNet(nn.Module):
    """Images to class scores, agreements and poses; scores and agreements do not change when the image is turned.

    Exact for turns by 90 degrees up to rounding, approximate in between. In float32 rounding changes scores of trained
    networks by less than 1e-4 (``equicaps.metrics.exactness`` measures it). See ``docs/steerable.md``.

    Args:
        body: images to class capsules.
        image_size: the size that images are brought to by those who prepare them, and that a decoder writes.
        pad: pad images of other than legal sizes with zeros instead of refusing them.
        decoder: whether to reconstruct the image.
    """

    def __init__(
        self, body: PaperNet | SteerableNet, *, image_size: int = 32, pad: bool = False, decoder: bool = False
    ) -> None:
        super().__init__()
        self.body = body
        self.pad = pad
        self.image_size = image_size
        self._warned = False  # about values out of range: once is enough
        config = body.config
        if not pad:
            check_size(image_size, image_size, config.grid)
        size = (image_size, image_size)
        self.decoder = Decoder(config.num_classes, config.in_channels, size) if decoder else None

    @classmethod
    def from_preset(
        cls, name: str, *, num_classes: int = 10, in_channels: int = 1, image_size: int = 32, pad: bool = False,
        decoder: bool = False,
    ) -> "GroupCapsNet":  # fmt: skip
        """A network by name, see :data:`PRESETS`."""
        if name not in PRESETS:
            raise ValueError(f"unknown preset {name!r}; choose one of {', '.join(map(repr, PRESETS))}.")
        make, options = PRESETS[name]
        config = make(num_classes=num_classes, in_channels=in_channels, **options)  # type: ignore[arg-type] # bools and an order
        body = SteerableNet(config) if isinstance(config, SteerableConfig) else PaperNet(config)
        return cls(body, image_size=image_size, pad=pad, decoder=decoder)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """Class capsules of a batch of images in [0, 1]."""
        return self._decoded(self.classify(images))

    def classify(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """The same without a reconstruction."""
        output: CapsOutput = self.body(self.prepare(images))
        return output

    def explain(self, images: Float[Tensor, "batch channels height width"]) -> tuple[CapsOutput, list[Capsules]]:
        """Class capsules and the capsules after every layer, for the price of one of them."""
        ready = self.prepare(images)
        capsules = self.body.capsules(ready)
        return self._decoded(self.body.answer(ready, capsules)), capsules

    def capsules(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """The capsules after every layer, for figures and audits."""
        return self.body.capsules(self.prepare(images))

    def parameter_counts(self) -> tuple[int, int]:
        """Of the body, which gives all answers, and of the decoder, which only training needs; 0 without one."""
        decoder = () if self.decoder is None else self.decoder.parameters()
        return sum(p.numel() for p in self.body.parameters()), sum(p.numel() for p in decoder)

    def _decoded(self, output: CapsOutput) -> CapsOutput:
        return output if self.decoder is None else output._replace(reconstruction=self.decoder(output))

    def prepare(self, images: Tensor) -> Tensor:
        """Check images and, with ``pad``, bring them to a legal size."""
        config = self.body.config
        check_images(images, config.in_channels, next(self.parameters()).dtype)
        if not torch.compiler.is_compiling():
            concern = check_values(images)
            if concern and not self._warned:
                self._warned = True
                warnings.warn(concern, stacklevel=2)
        if self.pad:
            return pad_to_legal(images, config.grid)
        if tuple(images.shape[-2:]) != (self.image_size, self.image_size):  # which the constructor has checked
            check_size(images.shape[-2], images.shape[-1], config.grid)
        return images
