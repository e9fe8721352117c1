"""Predictions for image files, one at a time in memory and many at a time in the network."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from equicaps.data import DamagedFileError
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
    """

    label: str
    confidence: float
    angle: float | None
    agreed_label: str | None
    agreement: float | None
    scores: dict[str, float]
    agreements: dict[str, float] | None


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
    model: TurningModel, files: Sequence[Path], *, batch: int = 32
) -> Iterator[tuple[Path, Answer | DamagedFileError | OSError]]:
    """Each file with what it shows or, if it cannot be read, the reason; in order."""
    for start in range(0, len(files), batch):
        read = {file: _ready(model, file) for file in files[start : start + batch]}
        images = [image for image in read.values() if isinstance(image, Tensor)]
        known = iter(answers(model.predict(torch.cat(images))) if images else ())
        for file, image in read.items():
            if not isinstance(image, Tensor):
                yield file, image
            else:
                yield file, next(known) if model.network.body.config.poses else _without_votes(next(known))


def _without_votes(answer: Answer) -> Answer:
    return replace(answer, angle=None, agreed_label=None, agreement=None, agreements=None)


def _ready(model: TurningModel, file: Path) -> Tensor | DamagedFileError | OSError:
    """A batch of one in the network's size."""
    try:
        image = as_batch(read_pixels(file).unsqueeze(0))
    except (DamagedFileError, OSError) as error:
        return error
    network = model.network
    return to_network(image, network.body.config.in_channels, network.image_size, model.card.frame)
