"""Data sets, generators and augmentation; knows nothing of networks."""

from equicaps.data.affnist import load_affnist
from equicaps.data.augmentation import ROTATED, TRANSLATED, UPRIGHT, Augmentation, Views
from equicaps.data.dataset import Dataset
from equicaps.data.embedded import embedded_digits
from equicaps.data.errors import DamagedFileError, FetchError
from equicaps.data.folder import Splits, load_folder
from equicaps.data.galaxies import load_galaxies
from equicaps.data.locate import cache_folder
from equicaps.data.mnist import load_mnist
from equicaps.data.mnist_rot import load_mnist_rot
from equicaps.data.moments import Centroid, PrincipalAxis, angle_difference, centroid, principal_axis
from equicaps.data.regenerated import regenerate_affnist, regenerate_mnist_rot
from equicaps.data.rotation import rotate, turn

__all__ = [
    "ROTATED",
    "TRANSLATED",
    "UPRIGHT",
    "Augmentation",
    "Centroid",
    "DamagedFileError",
    "Dataset",
    "FetchError",
    "PrincipalAxis",
    "Splits",
    "Views",
    "angle_difference",
    "cache_folder",
    "centroid",
    "embedded_digits",
    "load_affnist",
    "load_folder",
    "load_galaxies",
    "load_mnist",
    "load_mnist_rot",
    "principal_axis",
    "regenerate_affnist",
    "regenerate_mnist_rot",
    "rotate",
    "turn",
]
