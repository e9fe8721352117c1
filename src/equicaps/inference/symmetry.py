r"""Angles of what looks the same after a part of a turn, from the higher moments of a layer's capsules.

A bar has no top, so the votes for its pose cancel, but it has an axis. For every capsule c of a layer and every order k
:math:`Z_{ck} = \sum_x f_c(x)\, p_c(x)^k` rotates k times as fast as the image; under symmetry of order k it does not
cancel. The weighted sum over c that is strongest in the images of a class, the first eigenvector of
:math:`\sum Z Z^*`, needs no labels of angles, and its angle divided by k is known modulo 360 / k degrees.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn

from equicaps.functional import Capsules
from equicaps.images.rotation import rotate
from equicaps.metrics import AGREED, UNDEFINED, Network, PoseError, on_cpu
from equicaps.models import CapsOutput, GroupCapsNet
from equicaps.numerics import NO_EVIDENCE, at_least

ORDERS = (1, 2, 3, 4, 5, 6)
FEWEST = 5
"""A class with fewer images keeps the angle that its pose gives."""
FOLLOWS = 0.7
"""The resultant length above which an angle counts as following a rotation; 1 is without any error."""
UNKNOWN = 0.5
"""The resultant length below which a pose is no angle at all."""
FAINT = 0.01
"""The strength of a moment, relative to the features, below which it is noise."""
NOTHING = 0.002
"""The strength of all moments below which a class is round even if its poses follow: training teaches them to follow
the noise of each image, if there is nothing else. In a trained network the moments of drawn washers stay below 0.0006;
those of digits are above 0.03, and those of blood cells, coins and galaxies above 0.01 in an untrained one."""
BROKEN = 0.08
"""How strong moments that a symmetry forbids may be, relative to those that it allows."""
TOO_FAINT = 0.1
"""The strength, relative to that of the class, below which a single image has no angle."""


@dataclass(frozen=True)
class Symmetry:
    """The symmetry of a class.

    Attributes:
        order: the number of positions in one turn that look the same, at least 2; 0 if all do.
        strength: how strong the moment of that order is in the images of the class, relative to their features.
        weights: the weights of the capsules, real and imaginary.
    """

    order: int
    strength: float = 0.0
    weights: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.strength, *(part for weight in self.weights for part in weight))
        if self.order not in (0, *ORDERS[1:]) or self.strength < 0 or not all(map(math.isfinite, numbers)):
            raise ValueError(
                f"Symmetry: the order must be 0 or from 2 to {ORDERS[-1]}, the strength not negative, and all numbers "
                f"finite, but they are {self.order!r} and {numbers}."
            )

    @property
    def period(self) -> float:
        """The angle in degrees after which the class looks the same; 0 if any."""
        return 360 / self.order if self.order else 0.0


@dataclass(frozen=True)
class Symmetries:
    """The symmetries of all classes: None for one whose angle is that of its pose.

    Attributes:
        layer: the layer whose capsules are read.
        classes: one for each class.
    """

    layer: int
    classes: tuple[Symmetry | None, ...]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> "Symmetries":
        """From a model file."""
        found = [
            None if one is None else Symmetry(one["order"], one["strength"], tuple(map(tuple, one["weights"])))
            for one in content["classes"]
        ]
        return cls(content["layer"], tuple(found))

    def __post_init__(self) -> None:
        if type(self.layer) is not int:
            raise ValueError(f"Symmetries: the layer must be a whole number, but is {self.layer!r}.")

    @property
    def periods(self) -> Float[Tensor, " classes"]:
        """The angle in degrees after which each class looks the same."""
        return torch.tensor([360.0 if one is None else one.period for one in self.classes])

    @property
    def orders(self) -> Float[Tensor, " classes"]:
        """In how many positions of one turn each class looks the same; 0 if in all."""
        return torch.tensor([1.0 if one is None else float(one.order) for one in self.classes])

    def check(self, layers: Sequence[Capsules]) -> None:
        """Raise unless these symmetries can be read from the layers of a network."""
        if not 0 <= self.layer < len(layers):
            raise ValueError(f"Symmetries: there is no layer {self.layer}; the network has {len(layers)}.")
        wanted = layers[self.layer].activations.shape[1]
        for one in self.classes:
            if one is not None and one.order and [len(weight) for weight in one.weights] != [2] * wanted:
                raise ValueError(
                    f"Symmetries: expected {wanted} pairs of weights, one for each capsule, but there are "
                    f"{len(one.weights)}."
                )

    def angles(self, layers: Sequence[Capsules]) -> Float[Tensor, "n classes"]:
        """The angle of each image in degrees, as each symmetric class reads it; NaN for all others and where faint."""
        capsules = layers[self.layer]
        found = capsules.activations.new_full((len(capsules.activations), len(self.classes)), torch.nan)
        for label, one in enumerate(self.classes):
            if one is None or not one.order:
                continue
            moment, features = moments(capsules, [one.order])
            weights = torch.view_as_complex(torch.tensor(one.weights, device=found.device))
            seen = moment[:, 0] @ weights.conj()
            degrees = torch.rad2deg(seen.angle()) / one.order
            found[:, label] = torch.where(seen.abs() > TOO_FAINT * one.strength * features, degrees, torch.nan)
        return found


def moments(
    capsules: Capsules, orders: Sequence[int]
) -> tuple[Complex[Tensor, "n orders capsules"], Float[Tensor, " n"]]:
    """The moments of a layer's capsules over its grid, and the sum of all features."""
    poses = torch.view_as_complex(capsules.poses.float().contiguous())
    features = capsules.activations.float()
    found = [(features * poses**order).mean((2, 3)) for order in orders]
    return torch.stack(found, 1), features.mean((2, 3)).sum(1)


def with_moments(network: nn.Module, symmetries: Symmetries | None) -> Network:
    """Like :func:`~equicaps.metrics.on_cpu`, with poses of symmetric classes that follow a rotation.

    In place of the pose of a class of order k, whose votes cancel, stands the direction of its moment: it rotates k
    times as fast as the image, and is the same for the k positions that look the same. It is zero, which is undefined,
    where the moment is too faint and for a round class.
    """
    if symmetries is None:
        return on_cpu(network)
    assert isinstance(network, GroupCapsNet)
    parameter, orders = next(network.parameters()), symmetries.orders

    def answer(images: Float[Tensor, "n channels height width"]) -> CapsOutput:
        output, layers = network.explain(images.to(parameter.device, parameter.dtype))
        output = output.map(lambda value: value.to("cpu", images.dtype))
        angles = torch.deg2rad(symmetries.angles(layers).to(output.poses) * orders)
        directions = torch.stack((angles.cos(), angles.sin()), -1).nan_to_num(0.0)
        return output._replace(poses=torch.where(orders.unsqueeze(-1) == 1, output.poses, directions))

    return answer


def pose_error(errors: Float[Tensor, " n"], orders: Float[Tensor, " n"]) -> PoseError | None:
    """The error in degrees of images whose poses rotate ``orders`` times as fast, from the errors of these poses.

    That of a class of order k is at most 180 / k degrees. Images of round classes, of order 0, do not count; None if
    there are no others.
    """
    counted = orders > 0
    if not counted.any():
        return None
    undefined = (errors[counted] == UNDEFINED).double().mean().item() * 100
    degrees = errors[counted] / orders[counted]
    return PoseError(degrees.mean().item(), degrees.median().item(), undefined)


@torch.no_grad()
def find_symmetries(
    network: GroupCapsNet,
    images: Float[Tensor, "n channels height width"],
    labels: Int[Tensor, " n"],
    *,
    angles: Float[Tensor, " n"] | None = None,
    seed: int = 0,
) -> Symmetries | None:
    """Find the classes that look the same after a part of a turn; None if there are none or the network has no poses.

    A class has order k if the moments of order k follow when its images are rotated at random, and if those of orders
    that are no multiples of k are next to nothing. It counts as round if neither they nor its poses follow, or if all
    moments are so faint that its poses can follow nothing but noise. Where ``angles`` of images are known (degrees, NaN
    elsewhere), these say what upright is; otherwise all images of a class count as upright.
    """
    if not network.body.config.poses:
        return None
    degrees = 360 * torch.rand(len(images), generator=torch.Generator().manual_seed(seed))
    looks = [_look(network, images, labels, angles) for angles in (torch.zeros_like(degrees), degrees)]
    layer = looks[0].layer
    turns = torch.deg2rad(degrees)
    known = torch.full_like(turns, torch.nan) if angles is None else torch.deg2rad(angles)
    classes = []
    for label in range(network.body.config.num_classes):
        own = (labels == label).cpu()
        still, rotated = (look.take(own) for look in looks)
        classes.append(_symmetry(still, rotated, turns[own], known[own]) if own.sum() >= FEWEST else None)
    return Symmetries(layer, tuple(classes)) if any(classes) else None


@dataclass(frozen=True)
class _Look:
    """What a network sees in images of any class."""

    layer: int
    poses: Complex[Tensor, " n"]
    moments: Complex[Tensor, "n orders capsules"]
    features: Float[Tensor, " n"]

    def take(self, which: Tensor) -> "_Look":
        return _Look(self.layer, self.poses[which], self.moments[which], self.features[which])


def _look(network: GroupCapsNet, images: Tensor, labels: Tensor, degrees: Tensor, batch: int = 250) -> _Look:
    poses, found, features, layer = [], [], [], 0
    parameter = next(network.parameters())
    parts = zip(images.split(batch), labels.split(batch), degrees.split(batch), strict=True)
    for x, y, angles in parts:
        output, layers = network.explain(rotate(x, angles.to(x), network.image_size).to(parameter))
        sides = [capsules.activations.shape[-1] for capsules in layers]
        layer = max(number for number, side in enumerate(sides) if side == sides[0])  # the last one of the finest grid
        moment, feature = moments(layers[layer], ORDERS)
        poses.append(torch.view_as_complex(output.poses[torch.arange(len(y)), y].float().cpu().contiguous()))
        found.append(moment.cpu())
        features.append(feature.cpu())
    return _Look(layer, torch.cat(poses), torch.cat(found), torch.cat(features))


def _symmetry(still: _Look, rotated: _Look, turns: Float[Tensor, " n"], known: Float[Tensor, " n"]) -> Symmetry | None:
    """The symmetry of a class, from its images, whose angles may be known, and the same ones rotated by ``turns``."""
    known = torch.where(known.isnan() & known.isnan().all(), 0.0, known)
    weights = [_strongest(still.moments[:, number]) for number in range(len(ORDERS))]
    follows, strength, upright = {}, {}, {}
    for number, order in enumerate(ORDERS):
        before, after = (look.moments[:, number] @ weights[number].conj() for look in (still, rotated))
        follows[order] = _resultant(after * before.conj() * torch.polar(torch.ones_like(turns), -order * turns)).real
        strength[order] = float(before.abs().mean() / at_least(still.features.mean(), NO_EVIDENCE))
        upright[order] = _resultant((before * torch.polar(torch.ones_like(turns), -order * known))[~known.isnan()])
    signal = {order: strength[order] * max(float(follows[order]), 0.0) for order in ORDERS}
    for order in ORDERS[1:]:
        forbidden = max(signal[other] for other in ORDERS if other % order)
        if follows[order] > FOLLOWS and strength[order] > FAINT and forbidden < BROKEN * signal[order]:
            mean = upright[order]
            # Upright images read 0, if they have a common orientation.
            zero = mean / mean.abs() if mean.abs() > AGREED else torch.ones_like(mean)
            chosen = torch.view_as_real(weights[ORDERS.index(order)] * zero)
            return Symmetry(order, strength[order], tuple((x, y) for x, y in chosen.tolist()))
    pose = _resultant(rotated.poses * still.poses.conj() * torch.polar(torch.ones_like(turns), -turns)).real
    strongest = max(signal.values())
    return Symmetry(0) if strongest < NOTHING or (strongest < FAINT and pose < UNKNOWN) else None


def _strongest(found: Complex[Tensor, "n capsules"]) -> Complex[Tensor, " capsules"]:
    """The direction in which moments are strongest, whatever their phases: the first eigenvector of their products."""
    moments = found.numpy().astype(np.complex128)
    _, vectors = np.linalg.eigh(moments.T @ moments.conj())
    return torch.from_numpy(vectors[:, -1]).to(found.dtype)


def _resultant(values: Complex[Tensor, " n"]) -> Complex[Tensor, ""]:
    """The mean of the directions; what has none counts as zero."""
    return (values / at_least(values.abs(), NO_EVIDENCE)).mean()
