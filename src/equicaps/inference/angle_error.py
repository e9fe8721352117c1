"""How far an angle may be off, from the evidence for it, as measured on images that the network was not trained on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

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
"""The number of images without which nothing is stated, and half of that for an error of a class's own."""
FAINTEST = 1e-3
"""The least evidence that is told from none."""


@dataclass(frozen=True)
class AngleErrors:
    """A table from which the error of each angle is read: degrees that nine of ten angles do not exceed.

    The rough error of an image is that of its class divided by the evidence, the agreement of the class times its
    probability; between two entries of the table, errors are interpolated.

    Attributes:
        by_class: the error of each class.
        rough: ascending rough errors.
        errors: the error measured around each of them.
    """

    by_class: tuple[float, ...]
    rough: tuple[float, ...]
    errors: tuple[float, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "AngleErrors":
        """From a model file."""
        return cls(*(tuple(map(float, content[name])) for name in ("by_class", "rough", "errors")))

    def __post_init__(self) -> None:
        numbers = (*self.by_class, *self.rough, *self.errors)
        if not all(isinstance(value, int | float) and 0 <= value < math.inf for value in numbers):
            raise ValueError(f"AngleErrors: errors must be finite and not negative, but are {numbers}.")
        if not self.rough or len(self.rough) != len(self.errors) or list(self.rough) != sorted(self.rough):
            raise ValueError(
                f"AngleErrors: `rough` must ascend, with one of `errors` for each, but they are {self.rough} and "
                f"{self.errors}."
            )

    def __call__(self, labels: Int[Tensor, " n"], evidence: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """The error in degrees of the angle of each image, at most 180."""
        found = np.interp(self._rough(labels, evidence).numpy(), self.rough, self.errors)
        return torch.from_numpy(found).to(evidence.dtype).clamp(max=180.0)

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
    before: Float[Tensor, " n"],
) -> tuple[Prediction, Float[Tensor, " n"]]:
    """What a model says about rotated images, and how far their angles are from those of the images, rotated.

    The deviation is in [0, 180] degrees, or at most half the period of a symmetric class, and NaN without a pose.

    Args:
        model: a model with poses.
        images: the images, before they are rotated.
        degrees: by how much each of them is rotated.
        before: their angles before that, see :func:`angles_before`.
    """
    rotated = model.predict(rotate(images, degrees, model.image_size))
    period = torch.full_like(degrees, 360.0) if rotated.period is None else rotated.period
    return rotated, period / 2 - (period / 2 - (rotated.angles - before - degrees) % period).abs()


def angles_before(model: "PoseModel", images: Float[Tensor, "n channels height width"]) -> Float[Tensor, " n"]:
    """The angles of images that are not rotated, as the model itself says them."""
    still = torch.zeros(len(images), dtype=images.dtype)
    return model.predict(rotate(images, still, model.image_size)).angles


def coverage(
    model: "PoseModel", images: Float[Tensor, "n channels height width"], *, seed: int = 1
) -> dict[str, float] | None:
    """How often the error that a model states is kept, when images that it has never seen are rotated at random.

    The percentage of all angles that are no further off than stated, the same in the thirds of the images with the
    smallest, middle and largest stated error, and the mean of the stated errors in degrees. None without errors.
    """
    degrees = 360 * torch.rand(len(images), generator=torch.Generator().manual_seed(seed))
    found, off = deviations(model, images, degrees.to(images), angles_before(model, images))
    if found.angle_error is None or bool(off.isnan().all()):
        return None
    stated, off = found.angle_error[~off.isnan()], off[~off.isnan()]
    within = (off <= stated).double() * 100
    thirds = zip(("smallest", "middle", "largest"), within[stated.argsort()].tensor_split(3), strict=True)
    return {
        "stated_angle_error_mean": stated.mean().item(),
        "angle_error_coverage": within.mean().item(),
        **{f"angle_error_coverage_{name}_third": third.mean().item() for name, third in thirds},
    }


def measure_errors(
    model: "PoseModel", images: Float[Tensor, "n channels height width"], *, seed: int = 0
) -> AngleErrors | None:
    """Measure how far angles are off when images, which should not have been trained on, are rotated at random.

    None if the network has no poses or if there are fewer than :data:`FEWEST` images with a pose.
    """
    if not model.network.body.config.poses or len(images) < FEWEST:
        return None
    generator = torch.Generator().manual_seed(seed)
    views = min(max(VIEWS // len(images), 2), 20)
    degrees = 360 * torch.rand(views, len(images), generator=generator)
    before = angles_before(model, images)
    found = [deviations(model, images, angles.to(images), before) for angles in degrees]
    labels = torch.cat([prediction.labels for prediction, _ in found])
    seen = torch.cat([evidence(prediction) for prediction, _ in found])
    errors = torch.cat([deviation for _, deviation in found])
    defined = ~errors.isnan()
    if int(defined.sum()) < views * FEWEST:
        return None
    labels, seen, errors = labels[defined], seen[defined], errors[defined]
    overall = conformal_quantile(errors, views)
    of_classes = (errors[labels == label] for label in range(len(model.classes)))
    by_class = tuple(
        conformal_quantile(own, views) if 2 * len(own) >= views * FEWEST else overall for own in of_classes
    )
    rough = torch.tensor(by_class)[labels] / seen.clamp(min=FAINTEST)
    groups = rough.argsort().chunk(min(BINS, len(errors) // (views * FEWEST)))
    table = [(rough[group].median().item(), conformal_quantile(errors[group], views)) for group in groups]
    return AngleErrors(by_class, *zip(*table, strict=True))


def conformal_quantile(errors: Float[Tensor, " n"], views: int = 1) -> float:
    """What :data:`COVERAGE` of all errors stay below, with the margin that the number of images calls for.

    Of n exchangeable images the next one stays below the ⌈(n + 1) c⌉-th smallest with probability c (split conformal
    prediction); the views of one image are not independent, so they count as one.
    """
    images = max(1, len(errors) // views)
    return errors.quantile(min(1.0, math.ceil((images + 1) * COVERAGE) / images)).item()
