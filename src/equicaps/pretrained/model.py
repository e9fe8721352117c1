"""A trained network with everything around it."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from equicaps.data import turn
from equicaps.groups import SO2
from equicaps.models import CapsOutput, GroupCapsNet
from equicaps.pretrained.card import Card
from equicaps.pretrained.images import as_batch, square, to_network


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the images show and how they are turned.

    Attributes:
        labels: position of the most probable class in ``classes``.
        confidence: its probability.
        angles: degrees counter-clockwise against that class upright, in (-180, 180]; NaN where there is no pose.
        output: all scores, agreements and poses of the network.
        classes: names.
    """

    labels: Int[Tensor, " n"]
    confidence: Float[Tensor, " n"]
    angles: Float[Tensor, " n"]
    output: CapsOutput
    classes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The class of each image by name."""
        return [self.classes[label] for label in self.labels.tolist()]


class TurningModel:
    """A network that tells what an image shows and how it is turned, with its card.

    ``predict(rot90(x))`` gives the labels and confidences of ``predict(x)``, and angles larger by 90: exactly, up to
    rounding. At other angles interpolation makes it approximate.

    Args:
        network: in eval mode.
        card: what is known about it.
    """

    def __init__(self, network: GroupCapsNet, card: Card) -> None:
        self.network = network.eval()
        self.card = card

    def predict(self, images: Tensor, *, batch: int = 250) -> Prediction:
        """Class, confidence and angle of each image.

        Args:
            images: bytes or floats in [0, 1], of shape (h, w), (n, h, w) or (n, c, h, w), of any size.
            batch: how many at once.
        """
        outputs = list(self._outputs(as_batch(images), batch))
        return self.read(CapsOutput(*(torch.cat(part) for part in zip(*(entry[:3] for entry in outputs), strict=True))))

    def read(self, output: CapsOutput) -> Prediction:
        """What the network's output says."""
        probabilities = torch.softmax(output.scores, dim=-1)
        confidence, labels = probabilities.max(-1)
        return Prediction(labels, confidence, self.angles(output, labels), output, self.card.classes)

    def angles(self, output: CapsOutput, labels: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Degrees against the upright of the given class, in (-180, 180]; NaN where there is no pose."""
        poses = output.poses[torch.arange(len(labels)), labels]
        zeros = torch.tensor(self.card.zeros, dtype=poses.dtype)[labels]
        degrees = torch.rad2deg(SO2().log(poses).squeeze(-1)) - zeros
        degrees = 180 - (180 - degrees) % 360
        return torch.where(SO2().presence(poses) > 0.5, degrees, torch.nan)

    def upright(self, images: Tensor, *, batch: int = 250) -> Float[Tensor, "n channels side side"]:
        """Every image turned back by its predicted angle, padded to a square; as it is where there is no pose.

        Whole quarter turns move pixels without loss, so an image and its quarter turns give the same result; only the
        rest, at most 45 degrees, is interpolated.
        """
        originals = square(as_batch(images))
        angles = self.predict(images, batch=batch).angles.nan_to_num(0.0)
        return turn(originals, -angles.to(originals.device))

    def _outputs(self, images: Float[Tensor, "n channels height width"], batch: int) -> Iterator[CapsOutput]:
        config, parameter = self.network.body.config, next(self.network.parameters())
        for part in images.split(batch):
            with torch.no_grad():
                ready = to_network(part, config.in_channels, self.network.image_size, self.card.frame)
                output = self.network(ready.to(parameter)).map(lambda value: value.float().cpu())
            yield output
