"""What the page shows of one picture."""

import threading
import time
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from equicaps.data import embedded_digits
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.images import rotate
from equicaps.inference import PoseModel
from equicaps.inference.prediction import Answer
from equicaps.numerics import NO_EVIDENCE, at_least
from equicaps.serve.pictures import as_digit, fitted, read_upload

Brightness = Annotated[float, Field(ge=0, le=255, allow_inf_nan=False)]
Degrees = Annotated[float, Field(ge=-360, le=360, allow_inf_nan=False)]
OF_EACH_CLASS = 2
"""How many embedded digits are offered."""


class Question(BaseModel):
    """A picture and how it is to be turned; both angles in degrees, counter-clockwise."""

    model_config = ConfigDict(strict=True, extra="forbid")
    pixels: list[Brightness]
    degrees: Degrees = 0.0
    pose_degrees: Degrees = 0.0
    """By how much the pose is turned by hand before it is decoded."""


@dataclass(frozen=True)
class Picture:
    """A square of bytes: channel by channel, row by row."""

    pixels: list[int]
    label: str | None = None


@dataclass(frozen=True)
class Layer:
    """Poses of a layer as arrows (x right, y up), row by row; as long as the capsule is active, at most 1.

    Of several places, one capsule is shown, always the same: the most active on digits. Of a single place, all are.
    """

    side: int
    capsules: int
    shown: int | None
    arrows: list[tuple[float, float]]


@dataclass(frozen=True)
class Reply:
    """The picture as turned, what both networks say about it, and what goes on inside."""

    image: list[int]
    capsules: Answer
    plain: Answer | None
    layers: list[Layer]
    reconstruction: list[int] | None
    cpu_milliseconds: float


@dataclass(frozen=True)
class About:
    """What the page needs to know beforehand."""

    name: str
    task: str
    classes: list[str]
    channels: int
    side: int
    reconstruction_side: int | None
    layers: int
    digits: bool
    plain: bool


class Answers:
    """A model and, for comparison, a plain CNN; one picture at a time, so that CPU and memory stay bounded.

    Args:
        model: whose answers stay.
        plain: whose answers do not; of the same classes.
    """

    def __init__(self, model: PoseModel, plain: PoseModel | None = None) -> None:
        if plain is not None and plain.card.classes != model.card.classes:
            raise ValueError(f"Answers: {plain.card.name} has other classes than {model.card.name}.")
        self.model, self.plain = model, plain
        self.side, self.channels = model.card.frame, model.network.body.config.in_channels
        self._one_at_a_time = threading.Lock()
        with torch.inference_mode():
            some = model.prepare(embedded_digits("test").images[:10])
            layers = model.network.capsules(some)
        self._shown = [int(layer.activations.sum((0, -2, -1)).argmax()) for layer in layers]

    def about(self) -> About:
        """The model in short."""
        network, card = self.model.network, self.model.card
        return About(
            name=card.name,
            task=card.task,
            classes=list(card.classes),
            channels=self.channels,
            side=self.side,
            reconstruction_side=network.image_size if network.decoder else None,
            layers=len(self._shown),
            digits=card.classes == tuple("0123456789"),
            plain=self.plain is not None,
        )

    def digits(self) -> list[Picture]:
        """Some embedded test digits of each class, in the order of the classes; none for a model of other things."""
        if not self.about().digits:
            return []
        found, digits = [], embedded_digits("test")
        for label, name in enumerate(digits.classes):
            for image in digits.images[digits.labels == label][:OF_EACH_CLASS]:
                found.append(Picture(_bytes(fitted(image, self.channels, self.side)), name))
        return found

    def picture(self, content: bytes, *, centre: bool) -> Picture:
        """An uploaded image, fitted; with ``centre`` as MNIST has its digits.

        Raises:
            DamagedFileError: it cannot be read.
            ValueError: there is nothing on it.
        """
        with self._one_at_a_time:
            image = read_upload(content)
            return Picture(_bytes((as_digit if centre else fitted)(image, self.channels, self.side)))

    def check(self, question: Question) -> None:
        """Raise ValueError unless the picture has the right size."""
        expected = self.channels * self.side**2
        if len(question.pixels) != expected:
            raise ValueError(
                f"pixels must be {expected} numbers ({self.channels} x {self.side} x {self.side}), not "
                f"{len(question.pixels)}."
            )

    def answer(self, question: Question) -> Reply:
        """The picture turned (quarter turns only move pixels) and all there is to say about it."""
        with self._one_at_a_time, torch.inference_mode():
            started = time.thread_time()
            image = torch.tensor(question.pixels, dtype=torch.float32).div(255).reshape(-1, self.side, self.side)
            turned = rotate(image.unsqueeze(0), torch.tensor([question.degrees]))
            network = self.model.network
            output, layers = network.explain(self.model.prepare(turned))
            reconstruction = None
            if network.decoder is not None:
                by_hand = SO2().exp(torch.deg2rad(torch.tensor([question.pose_degrees])))
                turned_by_hand = output._replace(poses=SO2().compose(by_hand, output.poses))
                reconstruction = _bytes(network.decoder(turned_by_hand)[0])
            return Reply(
                image=_bytes(turned[0]),
                capsules=next(iter(self.model.interpret(output))),
                plain=next(iter(self.plain.predict(turned))) if self.plain else None,
                layers=[_layer(layer, shown) for layer, shown in zip(layers, self._shown, strict=True)],
                reconstruction=reconstruction,
                cpu_milliseconds=round(1000 * (time.thread_time() - started), 1),
            )


def _layer(layer: Capsules, shown: int) -> Layer:
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
