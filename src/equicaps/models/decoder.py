"""Reconstruction of the image from the class capsules."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps.models.output import CapsOutput


class Decoder(nn.Module):
    """The three-layer MLP of Section 6.2, which reads class probabilities, agreements and poses.

    Args:
        num_classes: the number of class capsules.
        channels: of the image.
        size: height and width of the image.
        hidden: the widths of the hidden layers.
        masked: whether poses are weighted by the class probabilities, so that, as in Sabour et al. (2017), the image
            is described by the pose of its own class.
    """

    def __init__(
        self, num_classes: int, channels: int, size: tuple[int, int], hidden: tuple[int, int] = (256, 512),
        *, masked: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.masked = masked
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
        probabilities = torch.softmax(output.scores, dim=-1)
        poses = output.poses * probabilities.unsqueeze(-1) if self.masked else output.poses
        image: Tensor = self.layers(torch.cat((probabilities, output.activations, poses.flatten(1)), dim=-1))
        return image.unflatten(1, self.shape)
