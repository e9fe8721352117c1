"""Data sets of images and shapes, and where to find them; nothing here knows about networks."""

from equicaps._cache import cache_folder
from equicaps.data.affnist import load_affnist
from equicaps.data.dataset import Dataset
from equicaps.data.embedded import embedded_digits
from equicaps.data.folder import Splits, load_folder
from equicaps.data.galaxies import load_galaxies
from equicaps.data.mnist import load_mnist
from equicaps.data.mnist_rot import load_mnist_rot
from equicaps.data.modelnet10 import load_modelnet10
from equicaps.data.regenerated import regenerate_affnist, regenerate_mnist_rot
from equicaps.data.shape_files import decode_shape, read_shape
from equicaps.data.shapes import Shapes, Surfaces
from equicaps.data.shapes_folder import ShapeSplits, load_shapes_folder
from equicaps.data.solids import solid_shapes
from equicaps.data.surfaces import Cloud, Mesh, Surface, VoxelSurface

__all__ = [
    "Cloud",
    "Dataset",
    "Mesh",
    "ShapeSplits",
    "Shapes",
    "Splits",
    "Surface",
    "Surfaces",
    "VoxelSurface",
    "cache_folder",
    "decode_shape",
    "embedded_digits",
    "load_affnist",
    "load_folder",
    "load_galaxies",
    "load_mnist",
    "load_mnist_rot",
    "load_modelnet10",
    "load_shapes_folder",
    "read_shape",
    "regenerate_affnist",
    "regenerate_mnist_rot",
    "solid_shapes",
]
