"""Reconstruction of the image from the class capsules."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps.models.output import CapsOutput


class Decoder(nn.Module):
    """The three-layer MLP of Section 6.2, which reads class probabilities, agreements and poses."""

    def __init__(
        self, num_classes: int, channels: int, size: tuple[int, int], hidden: tuple[int, int] = (256, 512)
    ) -> None:
        super().__init__()
        self.shape = (channels, *size)
        first, second = hidden
        self.layers = nn.Sequential(
            nn.Linear(4 * num_classes, first),
            nn.ReLU(),
            nn.Linear(first, second),
            nn.ReLU(),
            nn.Linear(second, channels * size[0] * size[1]),
            nn.Sigmoid(),
        )

    def forward(self, output: CapsOutput) -> Float[Tensor, "batch channels height width"]:
        """The image that the class capsules describe; rotating ``output.poses`` rotates it."""
        code = torch.cat((torch.softmax(output.scores, dim=-1), output.activations, output.poses.flatten(1)), dim=-1)
        image: Tensor = self.layers(code)
        return image.unflatten(1, self.shape)
