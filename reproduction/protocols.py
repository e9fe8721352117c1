"""The paper's data protocols: the training images, how they are augmented, and the test."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

from torch import nn

from equicaps.data import Dataset, embedded_digits, load_mnist, regenerate_affnist, regenerate_mnist_rot
from equicaps.images import ROTATED, TRANSLATED, UPRIGHT, Augmentation
from equicaps.models.sizes import pad_to
from equicaps.training import AnyAngle, AsTheyAre, Evaluation

SIZE = 32
"""The side to which digits of 28x28 pixels are padded."""
QUICK_EVERY = 5
"""Quick runs test on every fifth of the package's test digits."""


@dataclass(frozen=True)
class Protocol:
    """What a network is trained on and tested on.

    Attributes:
        training: loads the training images.
        augmentation: is applied to them on the fly.
        test: loads the test images and measures a network on them.
        validation: the same for images on which settings are chosen, and which no training with them contains.
        tested_on: says in words what the test images are.
        size: the side of the images.
        views: the number of views of each image in a batch; with two, their poses are compared.
        selection: loads the training images while settings are chosen, if ``training`` has the validation images, too.
    """

    training: Callable[[], Dataset]
    augmentation: Augmentation
    test: Callable[[], Evaluation]
    validation: Callable[[], Evaluation]
    tested_on: str
    size: int = SIZE
    views: int = 2
    selection: Callable[[], Dataset] | None = None


@cache
def mnist(split: Literal["train", "test"]) -> Dataset:
    """MNIST, read once."""
    return load_mnist(split)


def quick_digits() -> Dataset:
    """A few of the package's test digits."""
    return embedded_digits("test").take(slice(None, None, QUICK_EVERY))


def padded(data: Dataset) -> Dataset:
    """The data with a black margin around the images, up to :data:`SIZE`."""
    return replace(data, images=pad_to(data.images[:], SIZE, SIZE))


def _first_50k() -> Dataset:
    data = mnist("train").take(slice(None, 50_000))
    return replace(data, name=f"{data.name}, first 50,000")


def _last_10k() -> Dataset:
    data = mnist("train").take(slice(50_000, None))
    return replace(data, name=f"{data.name}, last 10,000")


@dataclass(frozen=True)
class AnyAngleAndUpright(AnyAngle):
    """At any angle, and as they are: the accuracy that networks of capsules keep under quarter turns."""

    def __call__(self, network: nn.Module, limit: int | None = None) -> dict[str, Any]:
        """The figures at any angle, and ``accuracy_upright``."""
        upright = AsTheyAre(padded(self.data))(network, limit)
        return super().__call__(network, limit) | {"accuracy_upright": upright["accuracy"]}


ANY_ANGLE = "MNIST (test), each digit rotated by a seeded random angle"

PROTOCOLS = {
    "rotated": Protocol(_first_50k, ROTATED, lambda: AnyAngle(mnist("test")), lambda: AnyAngle(_last_10k()), ANY_ANGLE),
    "mnist_rot": Protocol(
        lambda: regenerate_mnist_rot("train", mnist("train"), mnist("test")),
        replace(ROTATED, interpolation="bicubic"),
        lambda: AsTheyAre(padded(regenerate_mnist_rot("test", mnist("train"), mnist("test")))),
        lambda: AsTheyAre(padded(regenerate_mnist_rot("valid", mnist("train"), mnist("test")))),
        "MNIST-rot (regenerated, seed 0, test)",
    ),
    "affnist": Protocol(
        _first_50k,
        TRANSLATED,
        lambda: AsTheyAre(regenerate_affnist("test", mnist("train"), mnist("test"))),
        lambda: AsTheyAre(regenerate_affnist("valid", mnist("train"), mnist("test"))),
        "affNIST (regenerated, seed 0, test)",
        size=40,
    ),
    "upright": Protocol(
        lambda: mnist("train"),
        UPRIGHT,
        lambda: AnyAngle(mnist("test")),
        lambda: AnyAngleAndUpright(_last_10k()),
        ANY_ANGLE,
        views=1,
        selection=_first_50k,
    ),
}
"""Protocols by name. MNIST-rot is augmented with further rotations; for affNIST the training digits are translated but
never rotated; upright training digits are not augmented at all, unless a training says so."""


def _few_rotated() -> Dataset:
    digits = quick_digits()  # the full set mixes in training digits, which a test must not contain here
    return regenerate_mnist_rot("test", digits.take(slice(0, 0)), digits, counts=(0, 0, len(digits)))


def _few_affine() -> Dataset:
    return regenerate_affnist("test", embedded_digits("train"), quick_digits())


_QUICK_TESTS: dict[str, Callable[[], Evaluation]] = {
    "rotated": lambda: AnyAngle(quick_digits()),
    "mnist_rot": lambda: AsTheyAre(padded(_few_rotated())),
    "affnist": lambda: AsTheyAre(_few_affine()),
    "upright": lambda: AnyAngle(quick_digits()),
}

QUICK = {
    name: replace(
        protocol,
        training=lambda: embedded_digits("train"),
        test=_QUICK_TESTS[name],
        validation=_QUICK_TESTS[name],
        selection=None,
    )
    for name, protocol in PROTOCOLS.items()
}
"""The same protocols on the digits in the package, to show that everything runs; their figures enter no table."""
