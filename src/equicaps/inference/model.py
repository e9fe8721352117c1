"""A trained network that takes images as people have them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equicaps.errors import FileError
from equicaps.groups import SO2
from equicaps.images.background import border_brightness, is_opposite
from equicaps.images.prepare import ImageFormat, ImageLike, Images, fit, prepare, read, square
from equicaps.images.rotation import rotate
from equicaps.inference.card import Card
from equicaps.inference.prediction import Answer, Prediction
from equicaps.models import CapsOutput, GroupCapsNet

FileAnswer = tuple[Path, Answer | OSError]


class PoseModel(nn.Module):
    """A network that classifies images and says how they are rotated, with its card.

    ``predict(rot90(x))`` gives the labels and confidences of ``predict(x)``, and angles that are larger by 90: exactly,
    up to rounding. At other angles interpolation makes it approximate.

    Args:
        network: is put into eval mode.
        card: what is known about it.
    """

    def __init__(self, network: GroupCapsNet, card: Card) -> None:
        super().__init__()
        self.network = network
        self.card = card
        self.eval()

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the scores."""
        return self.card.classes

    @property
    def image_size(self) -> int:
        """The side of the images that the network takes; :meth:`predict` brings others to it."""
        return self.network.image_size

    @property
    def format(self) -> ImageFormat:
        """What :meth:`prepare` makes of images."""
        return ImageFormat(self.network.body.config.in_channels, self.image_size, self.card.frame)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """The network itself: scores, agreements and poses of every class, for images of its format."""
        output: CapsOutput = self.network(images)
        return output

    def prepare(self, images: Images) -> Float[Tensor, "n channels size size"]:
        """Images of any kind, size and colour in the network's :attr:`format`."""
        return prepare(images, self.format)

    def predict(self, images: Images, *, batch_size: int = 250) -> Prediction:
        """Class, confidence and angle of each image.

        Args:
            images: paths, encoded bytes, Pillow images, or arrays and tensors of bytes or floats in [0, 1] with shape
                (h, w), (n, h, w) or (n, c, h, w); of any size; one or a sequence.
            batch_size: how many go through the network at once.
        """
        return self.interpret(self._classify(self.prepare(images), batch_size))

    def predict_files(
        self, paths: Sequence[Path | str], *, invert: bool = False, batch_size: int = 32
    ) -> Iterator[FileAnswer]:
        """Each file with its answer or, if it cannot be read, the reason; in order, some at a time in memory.

        Args:
            paths: image files.
            invert: exchange bright and dark before anything else.
            batch_size: how many at once.
        """
        for start in range(0, len(paths), batch_size):
            opened = {Path(path): self._open(path, invert) for path in paths[start : start + batch_size]}
            ready = [found[0] for found in opened.values() if not isinstance(found, OSError)]
            answers = iter(self.interpret(self._classify(torch.cat(ready), batch_size)) if ready else ())
            for path, found in opened.items():
                if isinstance(found, OSError):
                    yield path, found
                else:
                    yield path, replace(next(answers), opposite_background=found[1])

    def _open(self, path: Path | str, invert: bool) -> tuple[Tensor, bool | None] | OSError:
        """One file in the network's format, and whether its background is the opposite of what the model knows."""
        try:
            [image] = read(path)
        except (FileError, OSError) as error:
            return error
        image = 1 - image if invert else image
        return fit(image, self.format), is_opposite(self.card.background, border_brightness(image[0]))

    def interpret(self, output: CapsOutput) -> Prediction:
        """What the network's output says."""
        confidence, labels = torch.softmax(output.scores, dim=-1).max(-1)
        poses = self.network.body.config.poses
        return Prediction(labels, confidence, self.angles(output, labels), output, self.classes, poses)

    def angles(self, output: CapsOutput, labels: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Degrees from the upright position of the given classes, in (-180, 180]; NaN without a pose."""
        if not self.network.body.config.poses:
            return torch.full_like(output.scores[:, 0], torch.nan)
        poses = output.poses[torch.arange(len(labels)), labels]
        zeros = poses.new_tensor(self.card.zeros)[labels]
        degrees = torch.rad2deg(SO2().log(poses).squeeze(-1)) - zeros
        degrees = 180 - (180 - degrees) % 360
        return torch.where(SO2().presence(poses) > 0.5, degrees, torch.nan)

    def upright(self, images: Tensor | ImageLike, *, batch_size: int = 250) -> Float[Tensor, "n channels side side"]:
        """Every image rotated back by its predicted angle and padded to a square; unchanged without a pose.

        Whole quarter turns move pixels without loss, so an image and its quarter turns give the same result; only the
        remainder, at most 45 degrees, is interpolated.
        """
        [originals] = read(images)
        angles = self.predict(originals, batch_size=batch_size).angles.nan_to_num(0.0)
        return rotate(square(originals), -angles.to(originals))

    @torch.no_grad()
    def _classify(self, ready: Float[Tensor, "n channels size size"], batch_size: int) -> CapsOutput:
        parameter, training = next(self.parameters()), self.training
        self.eval()  # predictions never depend on the mode
        try:
            outputs = [self.network.classify(part.to(parameter)) for part in ready.split(batch_size)]
        finally:
            self.train(training)
        parts = zip(*(output[:3] for output in outputs), strict=True)
        return CapsOutput(*(torch.cat(part).float().cpu() for part in parts))

    def __repr__(self) -> str:
        channels, size = self.format.channels, self.image_size
        count = self.network.parameter_counts()[0]
        names = ", ".join(self.classes[:4]) + (", ..." if len(self.classes) > 4 else "")
        return (
            f"PoseModel({self.card.name!r}: {len(self.classes)} classes ({names}), "
            f"images of {channels} x {size} x {size}, {count:,} parameters)"
        )
