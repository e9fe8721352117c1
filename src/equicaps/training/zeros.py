"""What training images say about the angles of each class: its zero, and how often it looks the same in one turn.

The zero is the angle that a network gives to upright images of the class.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from equicaps.data import Dataset
from equicaps.images.preparation import ImageFormat, fit, square
from equicaps.inference.symmetry import Symmetries, find_symmetries
from equicaps.metrics import class_zeros, on_cpu
from equicaps.models import CapsOutput, GroupCapsNet

KNOWN_PER_CLASS, FEWEST = 100, 10
"""At most this many images of a class with known angles determine its zero, because the error of a mean falls slowly,
and at least this many, if there are so many classes that their share of all would be less."""
SYMMETRY_IMAGES, FEW, ENOUGH = 500, 10, 50
"""The number of different training images in which symmetries are looked for: in all, and of each class at least and
at most."""


def zeros_of(network: nn.Module, data: Dataset, *, size: int, limit: int | None) -> list[float]:
    """The zeros of all classes, from training images prepared as for a prediction.

    Where angles are known, images with known angles determine the zero of their class; the images of other classes
    count as upright.

    Args:
        network: in eval mode, on any device.
        data: the training set.
        size: the side of the network's images.
        limit: use at most this many images that count as upright; None for all.
    """
    on_any_device, classes, some = on_cpu(network), len(data.classes), data.some(limit)

    def answer(images: Float[Tensor, "n channels height width"]) -> CapsOutput:
        return on_any_device(fit(images, ImageFormat(images.shape[1], size, max(images.shape[-2:]))))

    zeros = class_zeros(answer, some.images, some.labels, classes=classes)
    for label in data.labels[data.known_angles].unique().tolist():
        places = torch.nonzero(data.known_angles & (data.labels == label)).flatten()
        mine = data.take(places).once().some(min(KNOWN_PER_CLASS, max(FEWEST, (limit or len(data)) // classes)))
        zeros[label] = class_zeros(answer, mine.images, mine.labels, classes=classes, angles=mine.angles)[label]
    return zeros


def symmetries_of(network: nn.Module, data: Dataset) -> Symmetries | None:
    """The symmetries of all classes, from some training images of each; None if there are none.

    They depend on nothing else, so that the last evaluation and the card of the model speak of the same ones. Images
    that are repeated to balance classes are used once: a copy is no further evidence.
    """
    if not isinstance(network, GroupCapsNet):
        return None
    some = data.once().some_of_each(min(max(SYMMETRY_IMAGES // len(data.classes), FEW), ENOUGH))
    return find_symmetries(network, square(some.images[:]), some.labels, angles=some.angles)
