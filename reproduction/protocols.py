"""The paper's data protocols: what a network is trained on, how images are changed on the fly, what it is tested on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from equicaps.data import Dataset, embedded_digits, load_mnist, regenerate_affnist, regenerate_mnist_rot
from equicaps.images import ROTATED, TRANSLATED, UPRIGHT, Augmentation
from equicaps.training import AnyAngle, AsTheyAre, Evaluation

QUICK_EVERY = 5


@dataclass(frozen=True)
class Protocol:
    """Training images, their augmentation, and the test."""

    training: Callable[[], Dataset]
    augmentation: Augmentation
    test: Callable[[], Evaluation]
    size: int = 32
    views: int = 2
    """Of each image in a batch; with two, their poses are compared."""


@cache
def mnist(split: str) -> Dataset:
    """MNIST, read once."""
    return load_mnist("train") if split == "train" else load_mnist("test")


def _centred(data: Dataset, size: int = 32) -> Dataset:
    return replace(data, images=Augmentation(size)(data.images).images)


def _first(count: int) -> Dataset:
    data = mnist("train").take(slice(None, count))
    return replace(data, name=f"{data.name}, first {count:,}")


PROTOCOLS = {
    "rotated": Protocol(lambda: _first(50_000), ROTATED, lambda: AnyAngle(mnist("test"))),
    "mnist_rot": Protocol(
        lambda: regenerate_mnist_rot("train", mnist("train"), mnist("test")),
        replace(ROTATED, interpolation="bicubic"),
        lambda: AsTheyAre(_centred(regenerate_mnist_rot("test", mnist("train"), mnist("test")))),
    ),
    "affnist": Protocol(
        lambda: _first(50_000),
        TRANSLATED,
        lambda: AsTheyAre(regenerate_affnist("test", mnist("train"), mnist("test"))),
        size=40,
    ),
    "upright": Protocol(lambda: mnist("train"), UPRIGHT, lambda: AnyAngle(mnist("test")), views=1),
}
"""Name -> protocol. MNIST-rot is augmented with further turns; affNIST is trained on translated MNIST, never turned;
upright digits are as they are."""

QUICK = {
    name: replace(
        protocol,
        training=lambda: embedded_digits("train"),
        test={
            "mnist_rot": lambda: AsTheyAre(_centred(_few_rotated())),
            "affnist": lambda: AsTheyAre(_few_affine()),
        }.get(name, lambda: AnyAngle(quick_digits())),
    )
    for name, protocol in PROTOCOLS.items()
}
"""The same with the digits in the package, for tests; its figures never enter the tables."""


def quick_digits() -> Dataset:
    """Every fifth of the package's test digits."""
    return embedded_digits("test").take(slice(None, None, QUICK_EVERY))


def _few_rotated() -> Dataset:
    digits = quick_digits()  # and none of the training digits
    return regenerate_mnist_rot("test", digits.take(slice(0, 0)), digits, counts=(0, 0, len(digits)))


def _few_affine() -> Dataset:
    return regenerate_affnist("test", embedded_digits("train"), quick_digits())
