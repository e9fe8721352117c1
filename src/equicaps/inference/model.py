"""A trained network with its card, which takes images as people have them."""

import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equicaps._tensor_files import checksum
from equicaps.errors import UnansweredError
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.images.ahead import PIXELS, Room, ahead
from equicaps.images.preparation import ImageFormat, Images, prepare, prepared, read_batch, square
from equicaps.images.rotation import rotate
from equicaps.inference.angle_error import evidence
from equicaps.inference.batches import BATCH, answers_or_failures
from equicaps.inference.card import Card
from equicaps.inference.prediction import Answer, Failure, Prediction
from equicaps.models import CapsOutput, GroupCapsNet

WORKERS = 4
"""How many threads decode files."""

Source = Path | str | bytes
"""A file by its path, its address, or its content."""
FileAnswer = tuple[Path, Answer | Failure]


class Opened(NamedTuple):
    """An image in the network's format."""

    image: Float[Tensor, "1 channels size size"]
    inverted: bool
    """Whether it had to be inverted."""


class PoseModel(nn.Module):
    """A trained network that classifies images and predicts how they are rotated, with its card.

    ``predict(rot90(x))`` gives the labels and confidences of ``predict(x)`` and angles that are larger by 90 degrees,
    exactly up to rounding. For other rotations this is approximate. If ``network.ignores_mirror``, mirrored images have
    the same labels and confidences, too, and mirrored poses (``docs/guarantees.md``).

    Args:
        network: the trained network, which is put into eval mode.
        card: what is known about it.
    """

    def __init__(self, network: GroupCapsNet, card: Card) -> None:
        super().__init__()
        self.network = network
        self.card = card
        self.eval()
        if card.symmetries is not None:
            blank = torch.zeros(1, network.body.config.in_channels, network.image_size, network.image_size)
            with torch.no_grad():
                card.symmetries.check(network.capsules(blank.to(next(network.parameters()))))

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the scores."""
        return self.card.classes

    @property
    def image_size(self) -> int:
        """The side of the images that the network takes; :meth:`predict` brings other images to it."""
        return self.network.image_size

    @property
    def format(self) -> ImageFormat:
        """The format to which :meth:`prepare` brings images."""
        channels = self.network.body.config.in_channels
        return ImageFormat(channels, self.image_size, self.card.frame, self.card.background)

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """The output of the network itself: scores, agreements and poses of every class, for images of its format."""
        output: CapsOutput = self.network(images)
        return output

    def prepare(self, images: Images) -> Float[Tensor, "n channels size size"]:
        """Convert images of any kind, size and colour to the network's :attr:`format`."""
        return prepare(images, self.format)

    def predict(self, images: Images, *, batch_size: int = 250) -> Prediction:
        """Predict the class, its confidence and the angle of each image, whatever mode the model is in.

        Args:
            images: one image or a sequence of images of any size: paths, encoded bytes, Pillow images, or arrays and
                tensors of bytes or floats in [0, 1] with shape (h, w), (n, h, w) or (n, c, h, w).
            batch_size: how many images pass through the network at once.
        """
        ready = prepared(images, self.format)
        return replace(self._answers(ready.images, batch_size), inverted=ready.inverted)

    def predict_files(
        self, paths: Iterable[Path | str], *, batch_size: int = BATCH, workers: int = WORKERS
    ) -> Iterator[FileAnswer]:
        """Yield each file with its answer or, if there is none, the error; in order.

        Threads decode the next files while the network computes. The memory that this takes does not depend on the
        number of files.

        Args:
            paths: image files.
            batch_size: how many images pass through the network at once.
            workers: the number of threads that decode.
        """
        names, sources = itertools.tee(paths)
        answers = self.predict_sources(sources, batch_size=batch_size, workers=workers)
        return zip(map(Path, names), answers, strict=True)

    def predict_sources(
        self, sources: Iterable[Source], *, batch_size: int = BATCH, workers: int = WORKERS
    ) -> Iterator[Answer | Failure]:
        """Like :meth:`predict_files`, for paths, addresses such as ``s3://bucket/image.png``, and contents of files."""
        from equicaps.images.decode import image_size, is_remote  # Pillow is optional

        room = Room(PIXELS)

        def opened(source: Source) -> Opened | OSError:
            try:
                if isinstance(source, str) and is_remote(source):
                    from equicaps.images.remote import read_remote  # so is pyarrow

                    source = read_remote(source)
                return room.run(math.prod(image_size(source)), lambda: self._open(source))
            except OSError as error:
                return error

        def answers(ready: Sequence[Opened]) -> Prediction:
            found = self._answers(torch.cat([entry.image for entry in ready]), len(ready))
            return replace(found, inverted=torch.tensor([entry.inverted for entry in ready]))

        prepared = ahead(opened, sources, workers=workers, limit=2 * batch_size)
        return answers_or_failures(prepared, answers, batch_size)

    def _open(self, source: Source) -> Opened:
        """Read a file in the network's format."""
        ready = prepared(source, self.format)
        return Opened(ready.images, bool(ready.inverted))

    def fingerprint(self) -> str:
        """A checksum of all that answers depend on: weights, architecture, and what the card says about images."""
        card = self.card
        settings = (self.network.body.config, self.format, card.classes, card.zeros, card.angle_errors, card.symmetries)
        return checksum(repr(settings), self.network.state_dict())

    def interpret(self, output: CapsOutput, layers: Sequence[Capsules] = ()) -> Prediction:
        """Convert the network's output to a prediction.

        Without the capsules of its layers (see :meth:`GroupCapsNet.explain`), classes that look the same after a part
        of a turn have no angle.

        Raises:
            UnansweredError: if anything that the network has computed is not finite.
        """
        output = output.map(on_cpu)
        check_finite(output)
        layers = [Capsules(*map(on_cpu, layer)) for layer in layers]
        confidence, labels = torch.softmax(output.scores, dim=-1).max(-1)
        poses = self.network.body.config.poses
        found = Prediction(labels, confidence, self.angles(output, labels), output, self.classes, poses)
        errors, symmetries = self.card.angle_errors, self.card.symmetries
        if symmetries is not None:
            period = symmetries.periods[labels]
            read = symmetries.angles(layers)[torch.arange(len(labels)), labels] if layers else torch.nan
            angles = torch.where(period == 360, found.angles, _near(found.angles, read, period))
            found = replace(found, angles=angles, period=period)
        if errors is None:
            return found
        stated = torch.where(found.angles.isnan(), torch.nan, errors(labels, evidence(found)))
        return replace(found, angle_error=stated if found.period is None else torch.minimum(stated, found.period / 2))

    def angles(self, output: CapsOutput, labels: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The angles in degrees from the upright position of the given classes, in (-180, 180]; NaN without a pose."""
        if not self.network.body.config.poses:
            return torch.full_like(output.scores[:, 0], torch.nan)
        poses = output.poses[torch.arange(len(labels)), labels]
        zeros = poses.new_tensor(self.card.zeros)[labels]
        degrees = torch.rad2deg(SO2().log(poses).squeeze(-1)) - zeros
        degrees = 180 - (180 - degrees) % 360
        return torch.where(SO2().presence(poses) > 0.5, degrees, torch.nan)

    def upright(self, images: Images, *, batch_size: int = 250) -> Float[Tensor, "n channels side side"]:
        """Pad images to squares and rotate each back by its predicted angle; without a pose it is not rotated.

        Whole quarter turns move pixels without loss, so an image and its quarter turns give the same result; only the
        remainder, at most 45 degrees, is interpolated. The images must share one size.
        """
        originals = read_batch(images)
        angles = self.predict(originals, batch_size=batch_size).angles.nan_to_num(0.0)
        return rotate(square(originals), -angles.to(originals))

    @torch.no_grad()
    def _answers(self, ready: Float[Tensor, "n channels size size"], batch_size: int) -> Prediction:
        with eval_mode(self):
            return Prediction.cat([self._answer(part) for part in ready.split(batch_size)])

    def _answer(self, ready: Float[Tensor, "n channels size size"]) -> Prediction:
        ready = ready.to(next(self.parameters()))
        if self.card.symmetries is None:
            return self.interpret(self.network.classify(ready))
        return self.interpret(*self.network.explain(ready))

    def __repr__(self) -> str:
        channels, size = self.format.channels, self.image_size
        count = self.network.parameter_counts()[0]
        names = ", ".join(self.classes[:4]) + (", ..." if len(self.classes) > 4 else "")
        return (
            f"PoseModel({self.card.name!r}: {len(self.classes)} classes ({names}), "
            f"images of {channels} x {size} x {size}, {count:,} parameters)"
        )


def check_finite(output: CapsOutput, kind: str = "image") -> None:
    """Raise unless scores, agreements and poses of all images, or of what ``kind`` says, are finite."""
    finite = torch.cat([values.isfinite().flatten(1) for values in output[:3]], 1).all(1)
    if not finite.all():
        first = int((~finite).nonzero()[0])
        raise UnansweredError(
            f"the network has no answer for {kind} {first + 1} of {len(finite)}: what it computes is not a finite "
            "number, so its weights are damaged or far too large. Train it again."
        )


def on_cpu(tensor: Tensor) -> Tensor:
    """The values alone, in float32."""
    return tensor.detach().float().cpu()


def _near(pose: Float[Tensor, " n"], angle: Tensor | float, period: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Of all angles that a symmetric class cannot tell apart, the one nearest to its pose, if there is one.

    Poses rotate exactly with quarter turns, so the chosen angle does, too.
    """
    turns = torch.where(pose.isnan() | (period == 0), 0.0, torch.round((pose - angle) / period))
    return 180 - (180 - (angle + period * turns)) % 360


@contextlib.contextmanager
def eval_mode(module: nn.Module) -> Iterator[None]:
    """Put a module into eval mode, and restore the mode of each of its submodules afterwards."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
