"""How far an angle may be off, from the evidence for it, as measured on images that the network was not trained on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from equicaps.data.dataset import Dataset
from equicaps.images.moments import angle_distance
from equicaps.images.preparation import square
from equicaps.images.rotation import rotate
from equicaps.inference.prediction import Prediction

if TYPE_CHECKING:
    from equicaps.inference.model import PoseModel

COVERAGE = 0.9
"""The share of angles that are no further off than stated."""
VIEWS = 4000
"""How many rotated images are looked at, in all; at least two of each image and at most twenty."""
BINS = 5
"""How many groups of about equal rough errors have an error of their own."""
FEWEST = 20
"""The number of images without which nothing is stated, and half of that for an error of a class's own, whether it is
measured by rotating images or from known angles."""
FAINTEST = 1e-3
"""The least evidence that is told from none."""
FROM_TRUTH = "how far nine of ten angles are from known ones at most"
FROM_ROTATION = "how closely nine of ten angles follow when an image is rotated"
"""What an error says, measured in either way."""


@dataclass(frozen=True)
class AngleErrors:
    """A table from which the error of each angle is read: degrees that nine of ten angles do not exceed.

    The rough error of an image is that of its class divided by the evidence, the agreement of the class times its
    probability; between two entries of the table, errors are interpolated.

    Attributes:
        by_class: the error of each class.
        rough: ascending rough errors.
        errors: the error measured around each of them.
        known_angles: for each class, whether its error was measured from known angles; if not, it was measured by
            rotating images. Empty if that was so for all classes, also if a file says so class by class.
    """

    by_class: tuple[float, ...]
    rough: tuple[float, ...]
    errors: tuple[float, ...]
    known_angles: tuple[bool, ...] = ()

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "AngleErrors":
        """From a model file."""
        by_class, rough, errors = (tuple(map(float, content[name])) for name in ("by_class", "rough", "errors"))
        return cls(by_class, rough, errors, tuple(map(bool, content.get("known_angles", ()))))

    def __post_init__(self) -> None:
        numbers = (*self.by_class, *self.rough, *self.errors)
        if not all(isinstance(value, int | float) and 0 <= value < math.inf for value in numbers):
            raise ValueError(f"AngleErrors: errors must be finite and not negative, but are {numbers}.")
        if not self.rough or len(self.rough) != len(self.errors) or list(self.rough) != sorted(self.rough):
            raise ValueError(
                f"AngleErrors: `rough` must ascend, with one of `errors` for each, but they are {self.rough} and "
                f"{self.errors}."
            )
        if len(self.known_angles) not in (0, len(self.by_class)):
            raise ValueError(
                f"AngleErrors: `known_angles` must say something of each of {len(self.by_class)} classes, but is "
                f"{self.known_angles}."
            )
        if not any(self.known_angles):
            object.__setattr__(self, "known_angles", ())

    @property
    def is_known(self) -> Bool[Tensor, " classes"]:
        """For each class, whether its error was measured from known angles."""
        return torch.tensor(self.known_angles or (False,) * len(self.by_class))

    def __call__(self, labels: Int[Tensor, " n"], evidence: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The error in degrees of the angle of each image, at most 180."""
        found = np.interp(self._rough(labels, evidence).numpy(), self.rough, self.errors)
        return torch.from_numpy(found).to(evidence.dtype).clamp(max=180.0)

    def meaning(self, classes: Sequence[str]) -> str:
        """What these errors say, in words; ``classes`` are the names of the classes."""
        known = [name for name, is_known in zip(classes, self.known_angles, strict=False) if is_known]
        if not known:
            return FROM_ROTATION
        if len(known) == len(classes):
            return FROM_TRUTH
        return f"{FROM_TRUTH} ({', '.join(known)}), or {FROM_ROTATION} (other classes)"

    def _rough(self, labels: Tensor, evidence: Tensor) -> Float[Tensor, " n"]:
        return torch.tensor(self.by_class)[labels] / evidence.clamp(min=FAINTEST)


def evidence(prediction: Prediction) -> Float[Tensor, " n"]:
    """The agreement of each image's class times its probability; votes for a symmetric class cannot agree."""
    agreement = prediction.output.activations[torch.arange(len(prediction)), prediction.labels]
    if prediction.period is not None:
        agreement = torch.where(prediction.period == 360, agreement, 1.0)
    return agreement * prediction.confidence


def deviations(
    model: "PoseModel",
    images: Float[Tensor, "n channels height width"],
    degrees: Float[Tensor, " n"],
    before: Float[Tensor, "*ways n"],
) -> tuple[Prediction, Float[Tensor, "*ways n"]]:
    """What a model says about rotated images, and how far their angles are from those of the images, rotated.

    The deviation is in [0, 180] degrees, or at most half the period of a symmetric class, and NaN without a pose.

    Args:
        model: a model with poses.
        images: the images, before they are rotated.
        degrees: by how much each of them is rotated.
        before: their angles before that, see :func:`angles_before`.
    """
    rotated = model.predict(rotate(images, degrees, model.image_size))
    return rotated, angle_distance(rotated.angles, before + degrees, rotated.period)


def angles_before(model: "PoseModel", data: Dataset) -> Float[Tensor, "2 n"]:
    """The angles of images that are not rotated: known ones, NaN elsewhere, and those that the model itself gives."""
    images = square(data.images[:])
    own = model.predict(rotate(images, torch.zeros(len(images), dtype=images.dtype), model.image_size)).angles
    return torch.stack((torch.full_like(own, math.nan) if data.angles is None else data.angles.to(own), own))


def coverage(model: "PoseModel", data: Dataset, *, seed: int = 1) -> dict[str, float] | None:
    """How often the error that a model states is kept, when images that it has never seen are rotated at random.

    The percentage of all angles that are no further off than stated, the same in the thirds of the images with the
    smallest, middle and largest stated error, and the mean of the stated errors in degrees. None without errors.

    An angle is compared with what its error speaks of: with the known angle, if errors of the predicted class were
    measured from known angles, and otherwise with the angle before the rotation. In the first case images without a
    known angle do not count, and the number of those that do is a figure, too.
    """
    degrees = 360 * torch.rand(len(data), generator=torch.Generator().manual_seed(seed))
    images = square(data.images[:])
    found, (from_truth, from_rotation) = deviations(model, images, degrees.to(images), angles_before(model, data))
    if found.angle_error is None or model.card.angle_errors is None:
        return None
    known = model.card.angle_errors.is_known[found.labels]
    off = torch.where(known, from_truth, from_rotation)
    counted = ~off.isnan()
    if not counted.any():
        return None
    stated = found.angle_error[counted]
    within = (off[counted] <= stated).double() * 100
    thirds = zip(("smallest", "middle", "largest"), within[stated.argsort()].tensor_split(3), strict=True)
    return {
        "stated_angle_error_mean": stated.mean().item(),
        "angle_error_coverage": within.mean().item(),
        **{f"angle_error_coverage_{name}_third": third.mean().item() for name, third in thirds},
        **({"angle_error_known_angles": int((known & counted).sum())} if model.card.angle_errors.known_angles else {}),
    }


def measure_errors(model: "PoseModel", data: Dataset, *, seed: int = 0) -> AngleErrors | None:
    """Measure how far angles are off when images, which should not have been trained on, are rotated at random.

    Angles of a class with enough known ones (:func:`_with_known_angles`) are compared with these, and only images with
    a known angle count. Angles of every other class are compared with what the model says before the rotation. None if
    the network has no poses or if there are fewer than :data:`FEWEST` images with a pose.
    """
    if not model.network.body.config.poses or len(data) < FEWEST:
        return None
    images, before = square(data.images[:]), angles_before(model, data)
    views = min(max(VIEWS // len(images), 2), 20)
    degrees = 360 * torch.rand(views, len(images), generator=torch.Generator().manual_seed(seed))
    found = [deviations(model, images, angles.to(images), before) for angles in degrees]
    labels = torch.stack([prediction.labels for prediction, _ in found])
    seen = torch.stack([evidence(prediction) for prediction, _ in found])
    from_truth, from_rotation = torch.stack([off for _, off in found], dim=1)
    if int((~from_rotation.isnan()).sum()) < views * FEWEST:
        return None
    known = _with_known_angles(labels, from_truth, data.labels, len(model.classes))
    errors = torch.where(known[labels], from_truth, from_rotation)
    defined = ~errors.isnan()
    return _table(labels[defined], seen[defined], errors[defined], known, views)


def _with_known_angles(
    predicted: Int[Tensor, "views n"], from_truth: Float[Tensor, "views n"], labels: Int[Tensor, " n"], classes: int
) -> Bool[Tensor, " classes"]:
    """Which classes have :data:`FEWEST` / 2 images with a known angle that are recognised, with a pose, in some view.

    A class with fewer is measured by rotating its images: so few would say little about it, and the others nothing.
    """
    seen = (~from_truth.isnan() & (predicted == labels)).any(0)
    return 2 * labels[seen].bincount(minlength=classes) >= FEWEST


def _table(
    labels: Int[Tensor, " n"],
    seen: Float[Tensor, " n"],
    errors: Float[Tensor, " n"],
    known: Bool[Tensor, " classes"],
    views: int,
) -> AngleErrors:
    """The table of errors, from the predicted class, the evidence and the deviation of every view with a pose."""
    overall = conformal_quantile(errors, views)
    own = [errors[labels == label] for label in range(len(known))]
    enough = [bool(known[label]) or 2 * len(some) >= views * FEWEST for label, some in enumerate(own)]
    by_class = tuple(
        conformal_quantile(some, views) if is_enough else overall for some, is_enough in zip(own, enough, strict=True)
    )
    rough = torch.tensor(by_class)[labels] / seen.clamp(min=FAINTEST)
    groups = rough.argsort().chunk(max(1, min(BINS, len(errors) // (views * FEWEST))))
    return AngleErrors(
        by_class,
        rough=tuple(rough[group].median().item() for group in groups),
        errors=tuple(conformal_quantile(errors[group], views) for group in groups),
        known_angles=tuple(known.tolist()),
    )


def conformal_quantile(errors: Float[Tensor, " n"], views: int = 1) -> float:
    """What :data:`COVERAGE` of all errors stay below, with the margin that the number of images calls for.

    Of n exchangeable images the next one stays below the ⌈(n + 1) c⌉-th smallest with probability c (split conformal
    prediction); the views of one image are not independent, so they count as one.
    """
    images = max(1, len(errors) // views)
    return errors.quantile(min(1.0, math.ceil((images + 1) * COVERAGE) / images)).item()
