"""Data sets and where to find them; nothing here knows about networks."""

from equicaps._cache import cache_folder
from equicaps.data.affnist import load_affnist
from equicaps.data.dataset import Dataset
from equicaps.data.embedded import embedded_digits
from equicaps.data.folder import Splits, load_folder
from equicaps.data.galaxies import load_galaxies
from equicaps.data.mnist import load_mnist
from equicaps.data.mnist_rot import load_mnist_rot
from equicaps.data.regenerated import regenerate_affnist, regenerate_mnist_rot

__all__ = [
    "Dataset",
    "Splits",
    "cache_folder",
    "embedded_digits",
    "load_affnist",
    "load_folder",
    "load_galaxies",
    "load_mnist",
    "load_mnist_rot",
    "regenerate_affnist",
    "regenerate_mnist_rot",
]
