"""A few cutouts in the format of the FIRST galaxies, for the loader and the commands."""

import io

import numpy as np

SPLITS = ["test", "train", "valid", "train", "train", "test", "train", "valid", "train", "train", "train", "train"]


def small_set():
    """Twelve cutouts: more than ten, so that the order of the HDF5 groups' names is not that of their numbers."""
    generator = np.random.default_rng(0)
    images = np.zeros((12, 300, 300), np.uint8)
    images[:, 110:190, 110:190] = generator.integers(0, 256, (12, 80, 80), dtype=np.uint8)
    labels = np.arange(12, dtype=np.uint8) % 4
    return {"images": images, "labels": labels, "split": np.array(SPLITS)}


def npz(fields):
    file = io.BytesIO()
    np.savez_compressed(file, **fields)
    return file.getvalue()
