"""The certificate of a model: what is exact, and how good the rest is.

The exact part: under turns by 90, 180 and 270 degrees nothing may change but by rounding, in the answers and in every
layer. The rest is measured: accuracy and pose error at every angle, and how far each layer is from turning along.
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
from equicaps.inference.model import PoseModel
from equicaps.losses import true_poses
from equicaps.metrics import Exactness, LayerExactness, accuracy, exactness, layer_exactness, on_cpu, pose_errors

ALLOWED = 1e-4
"""Largest change of scores, agreements and defined poses of the answer under quarter turns."""
ALLOWED_IN_LAYERS = 1e-3
"""The same inside: single capsules on a grid rest on fewer votes, and there are millions of them."""
STEP = 15
LAYER_ANGLES = (15, 30, 45, 60, 75)
LAYER_IMAGES = 100


class AtAngle(NamedTuple):
    """Figures on images turned by one angle."""

    degrees: int
    accuracy: float
    """Percent, of the scores."""
    agreement_accuracy: float
    """Percent, of the agreements."""
    pose_error_mean: float
    """Degrees between the true class's pose and that of the image as given, turned along."""
    pose_error_median: float


class LayerAtAngle(NamedTuple):
    """How far one layer is from turning along, inside the circle that stays in the picture.

    Capsules of the turned image against those of the image, turned on their grid by interpolation, which on a coarse
    grid is itself a good part of the difference. Relative to the size of what is compared.
    """

    layer: int
    degrees: int
    invariance: float
    """Of the activations."""
    equivariance: float
    """Of the poses, each weighted by its activation."""
    control: float
    """Of the same poses, left as they were: what no equivariance at all would give."""


@dataclass(frozen=True)
class Certificate:
    """See the module. ``holds`` tells whether the exact part does."""

    model: str
    data: str
    images: int
    exact: Exactness
    exact_layers: tuple[LayerExactness, ...]
    angles: tuple[AtAngle, ...]
    layers: tuple[LayerAtAngle, ...]

    @property
    def failures(self) -> list[str]:
        """What is not exact, each as a sentence."""
        found = []
        if self.exact.predictions_changed:
            found.append(f"{self.exact.predictions_changed} predictions change under quarter turns")
        for name in ("scores", "activations", "poses"):
            value = getattr(self.exact, name)
            if not value < ALLOWED:
                found.append(f"{_WORDS.get(name, name)} change by {value:.1e} (allowed {ALLOWED:g})")
        for number, layer in enumerate(self.exact_layers, 1):
            worst = max(layer)
            if not worst < ALLOWED_IN_LAYERS:
                found.append(f"layer {number} changes by {worst:.1e} (allowed {ALLOWED_IN_LAYERS:g})")
        return found

    @property
    def holds(self) -> bool:
        """Whether the exact part holds."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        plain = asdict(self)
        plain["exact"] = self.exact._asdict()
        plain["exact_layers"] = [layer._asdict() for layer in self.exact_layers]
        plain["angles"] = [entry._asdict() for entry in self.angles]
        plain["layers"] = [entry._asdict() for entry in self.layers]
        return {"holds": self.holds, "failures": self.failures, "allowed": ALLOWED,
                "allowed_in_layers": ALLOWED_IN_LAYERS, **plain}  # fmt: skip


_WORDS = {"activations": "agreements"}


@torch.no_grad()
def audit(
    model: PoseModel, data: Dataset, *, step: int = STEP, watch: Callable[[str], None] | None = None
) -> Certificate:
    """Measure everything on the given images.

    Args:
        model: to audit.
        data: images of its classes.
        step: degrees between the angles of the plot.
        watch: is told what is being measured.
    """
    if not 1 <= step <= 180:
        raise ValueError(f"audit: step must be 1 to 180 degrees, but is {step}.")
    if tuple(data.classes) != tuple(model.card.classes):
        raise UsageError(
            f"{data.name} has the classes {', '.join(data.classes)}, but the model knows "
            f"{', '.join(model.card.classes)}: give images of the model's classes with --data."
        )
    tell = watch or (lambda what: None)
    network, still = on_cpu(model.network), _ready(model, data.images)
    seeded = torch.Generator().manual_seed(0)
    turned = _ready(model, data.images, 360 * torch.rand(len(still), generator=seeded))
    both = torch.cat((still, turned))  # as they are, and where nothing lies on the grid
    tell("quarter turns")
    exact = exactness(network, both)
    few = both[:: max(1, len(both) // LAYER_IMAGES)]
    tell("quarter turns, layer by layer")
    layers = layer_exactness(model.network.capsules, few)
    angles = []
    for degrees in range(0, 360, step):
        tell(f"{degrees} degrees")
        angles.append(_at_angle(model, data, degrees))
    tell("any angle, layer by layer")
    any_angle = [entry for degrees in LAYER_ANGLES for entry in layers_at_angle(model, data, degrees)]
    return Certificate(
        model.card.name, data.name, len(data), exact, tuple(layers), tuple(angles), tuple(any_angle)
    )  # fmt: skip


def _ready(model: PoseModel, images: Tensor, degrees: Tensor | None = None) -> Tensor:
    """In the network's size, turned there: at other angles nothing of the image is lost that its frame still holds."""
    ready = model.prepare(images)
    return ready if degrees is None else rotate(ready, degrees.to(ready.dtype))


def _at_angle(model: PoseModel, data: Dataset, degrees: int, batch: int = 250) -> AtAngle:
    network, errors, right = on_cpu(model.network), [], torch.zeros(2, dtype=torch.float64)
    for images, labels in zip(data.images.split(batch), data.labels.split(batch), strict=True):
        angle = torch.full((len(images),), float(degrees))
        still, turned = network(_ready(model, images)), network(_ready(model, images, angle))
        right += torch.tensor(accuracy(turned, labels), dtype=torch.float64) * len(images)
        errors.append(pose_errors(true_poses(still, labels), true_poses(turned, labels), angle))
    error, (scores, agreements) = torch.cat(errors), (right / len(data)).tolist()
    return AtAngle(degrees, scores, agreements, error.mean().item(), error.median().item())


@torch.no_grad()
def layers_at_angle(model: PoseModel, data: Dataset, degrees: int) -> list[LayerAtAngle]:
    """Every layer's figures at one angle, on some of the images."""
    images = data.images[:: max(1, len(data) // LAYER_IMAGES)][:LAYER_IMAGES]
    angles = torch.full((len(images),), float(degrees))
    still = model.network.capsules(_ready(model, images))
    turned = model.network.capsules(_ready(model, images, angles))
    found = []
    for number, (before, after) in enumerate(zip(still, turned, strict=True), 1):
        inside = _disc(before.activations)
        expected = turn_capsules(before, angles)
        apart = after.activations - expected.activations
        weighted, expected_poses = _weighted(after), expected.poses  # poses already carry their activations
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


def turn_capsules(capsules: Capsules, degrees: Float[Tensor, " batch"]) -> Capsules:
    """Capsules on a grid turned as a whole, by interpolation; poses come back times their activations."""
    batch, count = capsules.activations.shape[:2]
    places = torch.cat((capsules.activations, _weighted(capsules).movedim(-1, 1).flatten(1, 2)), dim=1)
    moved = rotate(places, degrees.to(places.dtype))
    activations, poses = moved[:, :count], moved[:, count:].unflatten(1, (2, count)).movedim(1, -1)
    g = SO2().exp(torch.deg2rad(degrees).to(places.dtype).reshape(batch, 1, 1, 1, 1))
    return Capsules(SO2().compose(g, poses), activations)


def _weighted(capsules: Capsules) -> Tensor:
    return capsules.poses * capsules.activations.unsqueeze(-1)


def _disc(activations: Tensor) -> Tensor:
    """1 on the grid's points whose turned place is on the grid for every angle."""
    side = activations.shape[-1]
    axis = torch.arange(side, dtype=activations.dtype) - (side - 1) / 2
    return (torch.hypot(axis[:, None], axis) <= max((side - 1) / 2, 0.5)).to(activations.dtype)


def _relative(difference: Tensor, expected: Tensor, inside: Tensor) -> float:
    size = (expected * inside).norm().item()
    return (difference * inside).norm().item() / size if size else 0.0
