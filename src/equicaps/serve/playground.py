"""Everything the page shows, computed from a model."""

import threading
import time

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import embedded_digits
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.images import rotate
from equicaps.inference import PoseModel
from equicaps.models import CapsOutput
from equicaps.numerics import NO_EVIDENCE, at_least
from equicaps.serve.messages import About, Layer, Picture, Question, Reply
from equicaps.serve.pictures import centred_digit, fitted, read_upload

DIGITS_PER_CLASS = 2


class Playground:
    """A model and, for comparison, a plain CNN. It handles one picture at a time, which bounds CPU and memory.

    Args:
        model: the capsule network to play with.
        plain: a network without poses for the same classes; None to show the model alone.
    """

    def __init__(self, model: PoseModel, plain: PoseModel | None = None) -> None:
        if plain is not None and plain.classes != model.classes:
            raise ValueError(f"Playground: {plain.card.name} and {model.card.name} must have the same classes.")
        self.model, self.plain = model, plain
        self.side, self.channels = model.format.frame, model.format.channels
        self._one_at_a_time = threading.Lock()
        with torch.inference_mode():
            layers = model.network.capsules(model.prepare(embedded_digits("test").images[:10]))
        self._most_active = [int(layer.activations.sum((0, -2, -1)).argmax()) for layer in layers]

    @property
    def pixel_count(self) -> int:
        """The number of values in a picture."""
        return self.channels * self.side**2

    def about(self) -> About:
        """A summary of the model."""
        network, card = self.model.network, self.model.card
        return About(
            name=card.name,
            task=card.task,
            classes=list(card.classes),
            channels=self.channels,
            side=self.side,
            reconstruction_side=network.image_size if network.decoder else None,
            layers=len(self._most_active),
            digits=card.classes == tuple("0123456789"),
            plain=self.plain is not None,
        )

    def digits(self) -> list[Picture]:
        """Embedded test digits, :data:`DIGITS_PER_CLASS` of each class; none for a model of other classes."""
        if not self.about().digits:
            return []
        found, digits = [], embedded_digits("test")
        for label, name in enumerate(digits.classes):
            for image in digits.images[digits.labels == label][:DIGITS_PER_CLASS]:
                found.append(Picture(_bytes(fitted(image, self.channels, self.side)), name))
        return found

    def picture(self, content: bytes, *, centre: bool) -> Picture:
        """An uploaded image file, resized for the model; with ``centre``, laid out like a digit of MNIST.

        Raises:
            DamagedFileError: if it cannot be read.
            ValueError: if nothing is drawn on it.
        """
        with self._one_at_a_time:
            image = read_upload(content)
            return Picture(_bytes((centred_digit if centre else fitted)(image, self.channels, self.side)))

    def answer(self, question: Question) -> Reply:
        """Rotate the picture (quarter turns only move pixels) and run both networks on it."""
        with self._one_at_a_time, torch.inference_mode():
            started = time.thread_time()
            image = torch.tensor(question.pixels).reshape(1, self.channels, self.side, self.side) / 255
            rotated = rotate(image, torch.tensor([question.degrees]))
            output, layers = self.model.network.explain(self.model.prepare(rotated))
            return Reply(
                image=_bytes(rotated[0]),
                capsules=next(iter(self.model.interpret(output))),
                plain=next(iter(self.plain.predict(rotated))) if self.plain else None,
                layers=[_arrows(layer, shown) for layer, shown in zip(layers, self._most_active, strict=True)],
                reconstruction=self._reconstruct(output, question.pose_degrees),
                cpu_milliseconds=round(1000 * (time.thread_time() - started), 1),
            )

    def _reconstruct(self, output: CapsOutput, degrees: float) -> list[int] | None:
        """What the decoder draws when all poses are rotated by ``degrees``."""
        decoder = self.model.network.decoder
        if decoder is None:
            return None
        g = SO2().exp(torch.deg2rad(torch.tensor([degrees])))
        return _bytes(decoder(output._replace(poses=SO2().compose(g, output.poses)))[0])


def _arrows(layer: Capsules, shown: int) -> Layer:
    poses, activations = layer.poses[0], layer.activations[0]
    capsules, side = activations.shape[:2]
    chosen = slice(shown, shown + 1) if side > 1 else slice(None)
    poses, activations = poses[chosen].flatten(0, 2), activations[chosen].flatten()
    defined = SO2().presence(poses) > 0.5
    lengths = activations.clamp(min=0) * defined / at_least(activations.max(), NO_EVIDENCE)
    arrows = torch.nn.functional.normalize(poses, dim=-1) * lengths.unsqueeze(-1)
    return Layer(side, capsules, shown if side > 1 else None, [(round(x, 3), round(y, 3)) for x, y in arrows.tolist()])


def _bytes(image: Float[Tensor, "channels height width"]) -> list[int]:
    return (image.clamp(0, 1) * 255).round().to(torch.uint8).flatten().tolist()
