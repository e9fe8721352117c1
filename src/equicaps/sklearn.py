"""A scikit-learn classifier whose predictions do not depend on how an image is rotated, and which reports the angle."""

import math
import tempfile
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from equicaps._checks import check_count
from equicaps.data import Dataset
from equicaps.errors import MissingPackageError
from equicaps.images import Augmentation
from equicaps.images.preparation import ImageFormat, fit, read_batch
from equicaps.inference import PoseModel, Prediction, load_image_model
from equicaps.models import Architecture
from equicaps.training import Budget, Hardware, TrainConfig, train
from equicaps.training.setup import legal_side

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state, check_scalar
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise MissingPackageError("equicaps.sklearn needs scikit-learn: pip install 'equicaps[sklearn]'.") from error

__all__ = ["RotationInvariantClassifier"]

ArrayLike: TypeAlias = Any
"""Whatever scikit-learn takes: arrays, lists, data frames. It checks them itself, with messages of its own."""
CHANNELS = (1, 3, 4)
"""The numbers of channels of grey images, of colour images, and of colour images with transparency."""


class RotationInvariantClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Classifies images whatever their orientation, and says how each is rotated.

    For images rotated by 90 degrees, ``predict`` and ``predict_proba`` return the same, and ``predict_angle`` returns
    angles that are larger by 90, exactly up to rounding. For other rotations this is approximate. The training rotates
    its images at random, so ``X`` needs no rotated ones.

    ``X`` holds images of shape (n, height, width), (n, height, width, channels) or (n, channels, height, width), or a
    table with one image per row. Bytes are divided by 255. All other numbers are mapped linearly to [0, 1], from the
    smallest interval that contains 0, 1 and the values of all training images: floats in [0, 1] stay as they are, and
    values from 0 to 16 are divided by 16. Later images are mapped in the same way.

    Args:
        preset: the network, one of :data:`equicaps.models.PRESETS`.
        minutes: how long to train, in CPU-minutes.
        steps: how long to train, in optimiser steps, instead of ``minutes``. With steps and an integer as
            ``random_state``, the same data give the same classifier.
        size: the side to which images are resized, rounded up to one that the network takes. By default images keep
            their size and are padded to the next such side; very small ones are first enlarged, but only so
            far that they stay inside at every rotation (to 22 of 32 pixels).
        image_shape: the shape of the image in a row of a table, such as (8, 6) or (32, 32, 3); one length may be -1. By
            default a row is a square grey image.
        random_state: the seed of weights, order and augmentation; an integer, a ``RandomState``, or None for NumPy's
            global one.
        device: where to train: auto, cpu, cuda, cuda:0, ... or mps. Predictions are made on the CPU.

    Attributes:
        classes_: the labels, in the order of the columns of :meth:`predict_proba`.
        image_shape_: the shape of a training image.
        n_features_in_: the number of values in a training image.
        value_range_: the values that are mapped to 0 and to 1, unless images are bytes.
        model_: the trained model, a :class:`~equicaps.PoseModel`, for images in [0, 1].
    """

    def __init__(
        self,
        preset: str = "steerable",
        *,
        minutes: float = 1.0,
        steps: int | None = None,
        size: int | None = None,
        image_shape: tuple[int, ...] | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
    ) -> None:
        self.preset = preset
        self.minutes = minutes
        self.steps = steps
        self.size = size
        self.image_shape = image_shape
        self.random_state = random_state
        self.device = device

    def fit(self, X: ArrayLike, y: ArrayLike, angles: ArrayLike = None) -> "RotationInvariantClassifier":
        """Train a network on images and their labels, which may be of any kind.

        Args:
            X: the images.
            y: their labels.
            angles: how each image is rotated from the upright position of its class, in degrees, counter-clockwise,
                NaN where that is unknown. By default it is unknown for all.
        """
        X, y = validate_data(self, X, y, allow_nd=True)
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "RotationInvariantClassifier needs images of at least 2 classes, but all labels in y belong to one "
                f"class, {self.classes_[0]!r}: add images of another one."
            )
        self.image_shape_ = X.shape[1:] if X.ndim > 2 else self._shape_of_rows(X.shape[1])
        self.n_features_in_ = math.prod(self.image_shape_)
        self.value_range_ = (0.0, 1.0) if _is_pixels(X) else (min(0.0, float(X.min())), max(1.0, float(X.max())))
        self.model_ = self._train(self._images(X), torch.from_numpy(labels), _degrees(angles, len(X)))
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The label of each image."""
        labels = self._predict(X).labels.numpy()
        return self.classes_[labels]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """The probability of each class, one row per image."""
        confidences = torch.softmax(self._predict(X).output.scores, dim=-1).double()
        return (confidences / confidences.sum(-1, keepdim=True)).numpy()

    def predict_angle(self, X: ArrayLike) -> NDArray[np.float64]:
        """The angle of each image in degrees, in (-180, 180], counter-clockwise from the upright position of its class.

        Upright is how the training images of that class are oriented on average, or what their known angles say. The
        angle is NaN for images without a pose. Of what looks the same after a part of a turn it is known modulo that
        part (``model_.predict(images).period``).
        """
        return self._predict(X).angles.double().numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.non_deterministic = self.steps is None  # in a minute, a busy machine makes fewer steps
        tags.classifier_tags.poor_score = True  # on scikit-learn's tables of two columns, which are no images
        return tags

    def _predict(self, X: ArrayLike) -> Prediction:
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, allow_nd=True, ensure_2d=np.asarray(X).ndim < 3)
        return self.model_.predict(fit(self._images(X), self.model_.format))

    def _train(
        self,
        images: Float[Tensor, "n channels height width"],
        labels: Int[Tensor, " n"],
        angles: Float[Tensor, " n"] | None,
    ) -> PoseModel:
        size, frame = self._sides(max(images.shape[-2:]))
        channels, names = images.shape[1], tuple(map(_name, self.classes_.tolist()))
        ready = fit(images, ImageFormat(channels, frame, frame))
        data = Dataset("images in memory", ready, labels, names, angles=angles)
        config = TrainConfig(
            self._budget(),
            Architecture(self.preset, num_classes=len(names), in_channels=channels, image_size=size),
            seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
            hardware=Hardware(device=self.device),
        )
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "classifier"
            if not train(config, data, Augmentation(size, rotation=180.0), folder=run).finished:
                raise KeyboardInterrupt  # `train` only takes note of Ctrl-C, but there is nothing here to resume
            return load_image_model(run)

    def _budget(self) -> Budget:
        if self.steps is not None:
            return Budget(steps=int(check_scalar(self.steps, "steps", Integral)))
        return Budget(minutes=float(check_scalar(self.minutes, "minutes", Real)))

    def _sides(self, side: int) -> tuple[int, int]:
        """The side of the network's images, and the one to which images of this side are resized before padding."""
        model = Architecture(self.preset)
        if self.size is not None:
            size = int(check_scalar(self.size, "size", Integral))
            check_count("RotationInvariantClassifier", "size", size)
            return (legal_side(model, size),) * 2
        size = legal_side(model, side)
        inscribed = 2 * int(size / math.sqrt(8))  # even like the network's sides, so that padding does not blur
        return size, max(side, inscribed)

    def _shape_of_rows(self, values: int) -> tuple[int, ...]:
        """The shape of the image in a row of this many values."""
        side = math.isqrt(values)
        given = (side, side) if self.image_shape is None else self.image_shape
        try:
            shape = np.empty(values).reshape(given).shape
        except (TypeError, ValueError):
            shape = ()
        if len(shape) not in (2, 3):
            expected = "a square grey image" if self.image_shape is None else f"an image of shape {given}"
            raise ValueError(
                f"each row of X must hold {expected}, but has {values} values: give the shape of an image, such as "
                "image_shape=(height, width) or (height, width, channels), or pass X with shape (n, height, width)."
            )
        return shape

    def _images(self, X: NDArray[Any]) -> Float[Tensor, "n channels height width"]:
        """Images in [0, 1] from an array that scikit-learn has checked; commutes with quarter turns."""
        X = X.reshape(-1, *self.image_shape_) if X.ndim == 2 else X
        if X.ndim == 3:
            X = X[:, None]
        elif X.shape[1] not in CHANNELS and X.shape[-1] in CHANNELS:
            X = np.moveaxis(X, -1, 1)
        if not _is_pixels(X):
            low, high = self.value_range_
            X = ((X.astype(np.float64) - low) / (high - low)).astype(np.float32)
        return read_batch(X)


def _is_pixels(X: NDArray[Any]) -> bool:
    """Whether the type of the values alone says which is black and which is white."""
    return X.dtype in (np.bool_, np.uint8, np.uint16)


def _degrees(angles: ArrayLike, images: int) -> Float[Tensor, " n"] | None:
    """The known angles of the training images, NaN where unknown; None if all are."""
    if angles is None:
        return None
    degrees = column_or_1d(np.asarray(angles, dtype=np.float64), warn=False)
    if len(degrees) != images or np.isinf(degrees).any():
        raise ValueError(
            f"angles must hold a finite number of degrees, or NaN, for each of the {images} images, but has "
            f"{len(degrees)} values, {np.isinf(degrees).sum()} of them infinite."
        )
    return None if np.isnan(degrees).all() else torch.from_numpy(degrees % 360).float()


def _name(label: object) -> str:
    """A name that the card accepts: one without control characters."""
    name = str(label)
    return name if name.isprintable() else repr(name)
