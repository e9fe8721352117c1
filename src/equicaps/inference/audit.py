"""The certificate of a model: what is exact, and how good it is where nothing is exact.

The exact part: under rotations by 90, 180 and 270 degrees the outputs and the capsules of every layer may change only
by rounding; so may the outputs under mirroring if the network ignores it. The rest is measured: accuracy and pose error
at every angle, and how far each layer is from equivariance.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Dataset
from equicaps.errors import UsageError
from equicaps.functional import Capsules
from equicaps.groups import SO2
from equicaps.images import rotate
from equicaps.images.stored import StoredImages
from equicaps.inference.model import PoseModel, eval_mode
from equicaps.inference.symmetry import pose_error, with_moments
from equicaps.losses import true_poses
from equicaps.metrics import Exactness, LayerExactness, accuracy, exactness, layer_exactness, on_cpu, pose_errors

ALLOWED = 1e-4
"""The change of scores, agreements and defined poses under quarter turns or mirroring must stay below this."""
ALLOWED_IN_LAYERS = 1e-3
"""The same inside the network: each capsule on a grid rests on few votes, and there are millions of them."""
STEP = 15
LAYER_ANGLES = (15, 30, 45, 60, 75)
LAYER_IMAGES = 100


class AtAngle(NamedTuple):
    """Accuracy and pose error on images rotated by one angle."""

    degrees: int
    accuracy: float
    """The accuracy of the scores in percent."""
    agreement_accuracy: float
    """The accuracy of the agreements in percent."""
    pose_error_mean: float | None
    """The mean angle in degrees between the pose of the true class and the rotated pose of the original image.

    Of a class that looks the same after a part of a turn it is measured modulo the period. Images of round classes do
    not count; None if there are no others."""
    pose_error_median: float | None


class LayerAtAngle(NamedTuple):
    """How far one layer is from equivariance, inside the disc that no rotation moves out of the image.

    The capsules of the rotated image are compared with those of the original image, rotated on their grid by
    interpolation, which on a coarse grid accounts for much of the error. Errors are relative to the norm of the
    expected values.
    """

    layer: int
    degrees: int
    invariance: float
    """The error of the activations."""
    equivariance: float
    """The error of the poses, each weighted by its activation."""
    control: float
    """The error of the false claim that the same poses do not move: what a layer without equivariance would give."""


@dataclass(frozen=True)
class Certificate:
    """What :func:`audit` found; ``holds`` says whether the exact part does."""

    model: str
    data: str
    images: int
    exact: Exactness
    exact_layers: tuple[LayerExactness, ...]
    angles: tuple[AtAngle, ...]
    layers: tuple[LayerAtAngle, ...]
    exact_mirrored: Exactness | None = None
    """The exactness under mirroring, of a network that ignores it."""
    images_modulo_period: int = 0
    """The number of images whose pose errors are those modulo the period of their class."""
    images_of_round_classes: int = 0
    """The number of images that have no pose errors."""

    @property
    def failures(self) -> list[str]:
        """What is not exact, each as a clause of a sentence."""
        found = changes(self.exact, "quarter turns")
        found += changes(self.exact_mirrored, "mirroring") if self.exact_mirrored else []
        for number, layer in enumerate(self.exact_layers, 1):
            if excess := [value for value in layer if not value < ALLOWED_IN_LAYERS]:  # NaN exceeds, too
                found.append(f"layer {number} changes by {max(excess):.1e} (allowed {ALLOWED_IN_LAYERS:g})")
        return found

    @property
    def holds(self) -> bool:
        """Whether the exact part holds."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values, for JSON."""
        plain = asdict(self)
        plain["exact"] = self.exact._asdict()
        plain["exact_mirrored"] = self.exact_mirrored and self.exact_mirrored._asdict()
        plain["exact_layers"] = [layer._asdict() for layer in self.exact_layers]
        plain["angles"] = [entry._asdict() for entry in self.angles]
        plain["layers"] = [entry._asdict() for entry in self.layers]
        return {"holds": self.holds, "failures": self.failures, "allowed": ALLOWED,
                "allowed_in_layers": ALLOWED_IN_LAYERS, **plain}  # fmt: skip


_WORDS = {"activations": "agreements"}


def changes(exact: Exactness, cause: str) -> list[str]:
    """What changes more than rounding explains, each as a clause of a sentence."""
    found = []
    if exact.predictions_changed:
        found.append(f"{exact.predictions_changed} predictions change under {cause}")
    for name in ("scores", "activations", "poses"):
        value = getattr(exact, name)
        if not value < ALLOWED:
            found.append(f"{_WORDS.get(name, name)} change by {value:.1e} under {cause} (allowed {ALLOWED:g})")
    return found


@torch.no_grad()
def audit(
    model: PoseModel, data: Dataset, *, step: int = STEP, watch: Callable[[str], None] | None = None
) -> Certificate:
    """Measure the exactness and the quality of a model on the given images.

    Args:
        model: the model to audit; it is measured in eval mode, on its device and in its dtype.
        data: images of the model's classes.
        step: the distance in degrees between the measured angles.
        watch: is called with the name of each measurement before it starts.
    """
    if not 1 <= step <= 180:
        raise ValueError(f"audit: step must be 1 to 180 degrees, but is {step}.")
    if tuple(data.classes) != tuple(model.card.classes):
        raise UsageError(
            f"{data.name} has the classes {', '.join(data.classes)}, but the model knows "
            f"{', '.join(model.card.classes)}: give images of the model's classes with --data."
        )
    announce = watch or (lambda what: None)
    still = _ready(model, data.images)
    seeded = torch.Generator().manual_seed(0)
    turned = _ready(model, data.images, 360 * torch.rand(len(still), generator=seeded))
    both = torch.cat((still, turned))  # rotated images too, in which nothing is aligned with the grid
    few = both[:: max(1, len(both) // LAYER_IMAGES)]
    with eval_mode(model):
        announce("quarter turns")
        exact, mirrored = exactness(on_cpu(model.network), both), None
        if model.network.ignores_mirror:
            announce("mirroring")
            mirrored = exactness(on_cpu(model.network), both, mirrored=True)
        announce("quarter turns, layer by layer")
        layers = layer_exactness(lambda images: _capsules(model, images), few)
        angles = []
        for degrees in range(0, 360, step):
            announce(f"{degrees} degrees")
            angles.append(_at_angle(model, data, degrees))
        announce("any angle, layer by layer")
        any_angle = [entry for degrees in LAYER_ANGLES for entry in layers_at_angle(model, data, degrees)]
    orders = _orders(model, data)
    return Certificate(
        model.card.name, data.name, len(data), exact, tuple(layers), tuple(angles), tuple(any_angle), mirrored,
        images_modulo_period=int((orders > 1).sum()), images_of_round_classes=int((orders == 0).sum()),
    )  # fmt: skip


def _capsules(model: PoseModel, images: Tensor) -> list[Capsules]:
    """The capsules after every layer, computed on the model's device and returned on the images'."""
    layers = model.network.capsules(images.to(next(model.parameters())))
    return [Capsules(layer.poses.to(images), layer.activations.to(images)) for layer in layers]


def _ready(model: PoseModel, images: Tensor | StoredImages, degrees: Tensor | None = None) -> Tensor:
    """Images in the network's format, rotated at that size so that the padding keeps their corners."""
    ready = model.prepare(images)
    return ready if degrees is None else rotate(ready, degrees.to(ready.dtype))


def _at_angle(model: PoseModel, data: Dataset, degrees: int, batch: int = 250) -> AtAngle:
    network, errors, right = with_moments(model.network, model.card.symmetries), [], torch.zeros(2, dtype=torch.float64)
    orders = _orders(model, data)
    parts = zip(data.images.split(batch), data.labels.split(batch), orders.split(batch), strict=True)
    for images, labels, order in parts:
        angle = torch.full((len(images),), float(degrees))
        still, turned = network(_ready(model, images)), network(_ready(model, images, angle))
        right += torch.tensor(accuracy(turned, labels), dtype=torch.float64) * len(images)
        errors.append(pose_errors(true_poses(still, labels), true_poses(turned, labels), angle * order))
    error, (scores, agreements) = pose_error(torch.cat(errors), orders), (right / len(data)).tolist()
    return AtAngle(degrees, scores, agreements, error and error.mean, error and error.median)


def _orders(model: PoseModel, data: Dataset) -> Float[Tensor, " n"]:
    """In how many positions of one turn the class of each image looks the same; 0 if in all."""
    symmetries = model.card.symmetries
    return torch.ones(len(data)) if symmetries is None else symmetries.orders[data.labels]


@torch.no_grad()
def layers_at_angle(model: PoseModel, data: Dataset, degrees: int) -> list[LayerAtAngle]:
    """Measure the equivariance of every layer at one angle, on some of the images."""
    images = data.take(slice(None, None, max(1, len(data) // LAYER_IMAGES))).images[:LAYER_IMAGES]
    angles = torch.full((len(images),), float(degrees))
    still, turned = _capsules(model, _ready(model, images)), _capsules(model, _ready(model, images, angles))
    found = []
    for number, (before, after) in enumerate(zip(still, turned, strict=True), 1):
        inside = _disc(before.activations)
        expected = rotate_capsules(before, angles)
        apart = after.activations - expected.activations
        weighted, expected_poses = _weighted(after), expected.poses  # the latter are weighted already
        found.append(
            LayerAtAngle(
                number,
                degrees,
                _relative(apart, expected.activations, inside),
                _relative(weighted - expected_poses, expected_poses, inside.unsqueeze(-1)),
                _relative(weighted - _weighted(before), expected_poses, inside.unsqueeze(-1)),
            )
        )
    return found


def rotate_capsules(capsules: Capsules, degrees: Float[Tensor, " batch"]) -> Capsules:
    """Rotate capsules on a grid, positions and poses, by interpolation; returns poses weighted by their activations."""
    batch, count = capsules.activations.shape[:2]
    places = torch.cat((capsules.activations, _weighted(capsules).movedim(-1, 1).flatten(1, 2)), dim=1)
    moved = rotate(places, degrees.to(places.dtype))
    activations, poses = moved[:, :count], moved[:, count:].unflatten(1, (2, count)).movedim(1, -1)
    g = SO2().exp(torch.deg2rad(degrees).to(places.dtype).reshape(batch, 1, 1, 1, 1))
    return Capsules(SO2().compose(g, poses), activations)


def _weighted(capsules: Capsules) -> Tensor:
    return capsules.poses * capsules.activations.unsqueeze(-1)


def _disc(activations: Tensor) -> Tensor:
    """1 at the grid points that stay on the grid under every rotation, 0 elsewhere."""
    side = activations.shape[-1]
    axis = torch.arange(side, dtype=activations.dtype) - (side - 1) / 2
    return (torch.hypot(axis[:, None], axis) <= max((side - 1) / 2, 0.5)).to(activations.dtype)


def _relative(difference: Tensor, expected: Tensor, inside: Tensor) -> float:
    size = (expected * inside).norm().item()
    return (difference * inside).norm().item() / size if size else 0.0
