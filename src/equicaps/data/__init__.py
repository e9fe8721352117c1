"""Data sets and augmentation; knows nothing of networks."""

from equicaps.data.mnist import load_mnist
from equicaps.data.rotation import rotate

__all__ = ["load_mnist", "rotate"]
