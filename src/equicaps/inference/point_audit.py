"""The certificate of a model for shapes: what rotations of space change, which must be nothing but rounding.

Beside that it is measured how good the model is: accuracy, and how far poses are off if the points are drawn anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import Shapes
from equicaps.data.padding import PaddedClouds
from equicaps.errors import UsageError
from equicaps.groups import SO3
from equicaps.inference.audit import ALLOWED, changes
from equicaps.inference.batches import BATCH
from equicaps.inference.model import eval_mode
from equicaps.inference.point_model import PointModel
from equicaps.losses import true_poses
from equicaps.metrics import Exactness, Network, PosePairs, accuracy, on_cpu, rotation_errors
from equicaps.models.output import CapsOutput

ROTATIONS = 4
"""How many random rotations of each shape are compared."""


@dataclass(frozen=True)
class PointCertificate:
    """What :func:`audit_points` found; ``holds`` says whether the exact part does.

    Attributes:
        model: the name of the model.
        data: the name of the shapes.
        shapes: how many there are.
        rotations: how many rotations of each were compared.
        exact: the largest changes under these rotations.
        accuracy: of the scores, in percent.
        agreement_accuracy: of the agreements, in percent.
        pose_error_mean: the mean angle in degrees between the true rotation and the predicted one, from a shape to the
            same shape with other points, rotated at random; of shapes that have other points and whose class is
            right in both. None if there are none.
        pose_error_median: the median of the same.
    """

    model: str
    data: str
    shapes: int
    rotations: int
    exact: Exactness
    accuracy: float
    agreement_accuracy: float
    pose_error_mean: float | None
    pose_error_median: float | None

    @property
    def failures(self) -> list[str]:
        """What is not exact, each as a clause of a sentence."""
        return changes(self.exact, "rotations")

    @property
    def holds(self) -> bool:
        """Whether the exact part holds."""
        return not self.failures

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain values, for JSON."""
        plain = {**asdict(self), "exact": self.exact._asdict()}
        return {"holds": self.holds, "failures": self.failures, "allowed": ALLOWED, **plain}


@torch.no_grad()
def audit_points(
    model: PointModel, data: Shapes, *, rotations: int = ROTATIONS, seed: int = 0,
    watch: Callable[[str], None] | None = None,
) -> PointCertificate:  # fmt: skip
    """Measure what random rotations change, and the quality of a model, on the given shapes.

    Args:
        model: the model to audit; it is measured in eval mode, on its device and in its dtype.
        data: shapes of the model's classes.
        rotations: how many rotations of each shape are compared.
        seed: of the rotations and of the points.
        watch: is called with the name of each measurement before it starts.
    """
    if tuple(data.classes) != tuple(model.classes):
        raise UsageError(
            f"{data.name} has the classes {', '.join(data.classes)}, but the model knows {', '.join(model.classes)}: "
            "give shapes of the model's classes with --data."
        )
    if rotations < 1 or not len(data):
        raise ValueError(f"audit: there must be rotations and shapes, but there are {rotations} and {len(data)}.")
    announce, group = watch or (lambda what: None), SO3()
    generator = torch.Generator().manual_seed(seed)
    clouds, others = (PaddedClouds.of(data.surfaces.draw(model.card.points, generator)) for _ in range(2))
    with eval_mode(model):
        network = on_cpu(model.network)
        announce("the shapes as given")
        still, found = _answers(network, clouds), []
        for number in range(rotations):
            announce(f"rotation {number + 1} of {rotations}")
            turn = group.random(len(data), generator=generator)
            found.append(_exactness(still, _answers(network, _rotated(clouds, turn)), turn))
        announce("other points")
        turn = group.random(len(data), generator=generator)
        anew = _answers(network, _rotated(others, turn))
    right = (still.scores.argmax(-1) == data.labels) & (anew.scores.argmax(-1) == data.labels)
    right &= ~data.surfaces.whole(model.card.points)
    before, after = (true_poses(output, data.labels)[right] for output in (still, anew))
    errors = rotation_errors(PosePairs(before, after, group.identity(len(before)), turn[right]))
    exact = _worst(found)
    return PointCertificate(
        model.card.name, data.name, len(data), rotations, exact, *accuracy(still, data.labels),
        errors.mean().item() if len(errors) else None, errors.median().item() if len(errors) else None,
    )  # fmt: skip


def _answers(network: Network, clouds: PaddedClouds) -> CapsOutput:
    return CapsOutput.cat([network(*part) for part in clouds.split(BATCH)])


def _rotated(clouds: PaddedClouds, turn: Float[Tensor, "n 9"]) -> PaddedClouds:
    return clouds._replace(points=clouds.points @ turn.unflatten(-1, (3, 3)).mT)


def _worst(found: Sequence[Exactness]) -> Exactness:
    """The changes under all rotations; NaN stays NaN."""
    scores, activations, poses = torch.tensor([each[2:5] for each in found], dtype=torch.float64).amax(0).tolist()
    changed = sum(each.predictions_changed for each in found)
    return Exactness(found[0].images, changed, scores, activations, poses, found[0].poses_defined)


def _exactness(still: CapsOutput, turned: CapsOutput, turn: Float[Tensor, "n 9"]) -> Exactness:
    """The changes under one rotation of each shape; NaN stays NaN."""
    group = SO3()
    defined = (group.presence(still.poses) > 0.5).unsqueeze(-1)
    expected = group.compose(turn.unsqueeze(1), still.poses)
    return Exactness(
        len(turn),
        int((still.scores.argmax(-1) != turned.scores.argmax(-1)).sum()),
        (turned.scores - still.scores).abs().amax().item(),
        (turned.activations - still.activations).abs().amax().item(),
        ((turned.poses - expected) * defined).abs().amax().item(),
        100 * defined.double().mean().item(),
    )
