"""Predictions for image files, one at a time in memory and many at a time in the network."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from equicaps.data import DamagedFileError
from equicaps.data.ground import border_brightness, is_opposite
from equicaps.data.images import read_pixels
from equicaps.pretrained.images import as_batch, to_network
from equicaps.pretrained.model import Prediction, TurningModel


@dataclass(frozen=True)
class Answer:
    """What one image shows, by both outputs of the network.

    Attributes:
        label: the class with the highest score.
        confidence: its probability.
        angle: degrees counter-clockwise against that class upright, in (-180, 180]; None without a pose.
        agreed_label: the class whose capsule's votes agree most; None if the network has no poses, and so no votes.
        agreement: of that capsule, in [0, 1]; None likewise.
        scores: of every class, before the softmax.
        agreements: of every class; None likewise.
        opposite_ground: whether the image is dark on bright ground and the training images were bright on dark, or the
            other way round; None if the model's card does not tell.
    """

    label: str
    confidence: float
    angle: float | None
    agreed_label: str | None
    agreement: float | None
    scores: dict[str, float]
    agreements: dict[str, float] | None
    opposite_ground: bool | None = None


def answers(prediction: Prediction) -> list[Answer]:
    """One for each image."""
    classes, found = prediction.classes, []
    rows = zip(
        prediction.names, prediction.confidence.tolist(), prediction.angles.tolist(),
        prediction.output.scores.tolist(), prediction.output.activations.tolist(), strict=True,
    )  # fmt: skip
    for name, confidence, angle, scores, agreements in rows:
        agreed = max(range(len(classes)), key=agreements.__getitem__)
        found.append(
            Answer(
                label=name,
                confidence=confidence,
                angle=None if math.isnan(angle) else angle,
                agreed_label=classes[agreed],
                agreement=agreements[agreed],
                scores=dict(zip(classes, scores, strict=True)),
                agreements=dict(zip(classes, agreements, strict=True)),
            )
        )
    return found


def predict_files(
    model: TurningModel, files: Sequence[Path], *, invert: bool = False, batch: int = 32
) -> Iterator[tuple[Path, Answer | DamagedFileError | OSError]]:
    """Each file with what it shows or, if it cannot be read, the reason; in order.

    Args:
        model: to ask.
        files: images.
        invert: make dark what is bright, and bright what is dark, before anything else.
        batch: how many at once.
    """
    for start in range(0, len(files), batch):
        read = {file: _ready(model, file, invert) for file in files[start : start + batch]}
        images = [ready.image for ready in read.values() if isinstance(ready, _Ready)]
        known = iter(answers(model.predict(torch.cat(images))) if images else ())
        for file, ready in read.items():
            if not isinstance(ready, _Ready):
                yield file, ready
            else:
                answer = replace(next(known), opposite_ground=ready.opposite_ground)
                yield file, answer if model.network.body.config.poses else _without_votes(answer)


def _without_votes(answer: Answer) -> Answer:
    return replace(answer, angle=None, agreed_label=None, agreement=None, agreements=None)


class _Ready(NamedTuple):
    """A batch of one in the network's size."""

    image: Tensor
    opposite_ground: bool | None


def _ready(model: TurningModel, file: Path, invert: bool) -> _Ready | DamagedFileError | OSError:
    try:
        pixels = read_pixels(file)
    except (DamagedFileError, OSError) as error:
        return error
    if invert:
        pixels = 1 - pixels
    network, card = model.network, model.card
    image = to_network(
        as_batch(pixels.unsqueeze(0)), network.body.config.in_channels, network.image_size, card.frame
    )  # fmt: skip
    return _Ready(image, is_opposite(card.ground, border_brightness(pixels)))
