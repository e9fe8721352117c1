"""Data sets, generators and augmentation; knows nothing of networks."""

from equicaps.data.augmentation import ROTATED, TRANSLATED, UPRIGHT, Augmentation, Views
from equicaps.data.dataset import Dataset
from equicaps.data.embedded import embedded_digits
from equicaps.data.mnist import load_mnist
from equicaps.data.regenerated import regenerate_affnist, regenerate_mnist_rot
from equicaps.data.rotation import rotate

__all__ = [
    "ROTATED",
    "TRANSLATED",
    "UPRIGHT",
    "Augmentation",
    "Dataset",
    "Views",
    "embedded_digits",
    "load_mnist",
    "regenerate_affnist",
    "regenerate_mnist_rot",
    "rotate",
]
