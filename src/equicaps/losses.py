"""The losses of the paper, two losses of poses (label-free, and for known angles), and the weighted sum."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from equicaps._checks import check_not_negative
from equicaps.groups import SO2
from equicaps.models.output import CapsOutput
from equicaps.numerics import at_least


def spread_loss(
    activations: Float[Tensor, "batch classes"], labels: Int[Tensor, " batch"], margin: float
) -> Float[Tensor, ""]:
    r"""The spread loss of Hinton et al. (2018), averaged over the batch.

    .. math:: \sum_{i \ne t} \max(0, m - (a_t - a_i))^2
    """
    target = activations.gather(1, labels[:, None])
    gap = F.relu(margin - (target - activations)).square()
    return (gap.sum(1) - margin**2).mean()  # the true class contributes margin² to the sum


def spread_margin(progress: float, start: float = 0.2, end: float = 0.9) -> float:
    """The margin of the spread loss: it grows linearly from ``start`` to ``end`` as ``progress`` goes from 0 to 1."""
    return start + (end - start) * min(max(progress, 0.0), 1.0)


def pose_consistency(
    first: Float[Tensor, "batch 2"], second: Float[Tensor, "batch 2"], degrees: Float[Tensor, " batch"]
) -> Float[Tensor, ""]:
    r"""A label-free loss: the poses of two rotations of one image must differ by that rotation.

    .. math:: 1 - \langle R(\varphi_2 - \varphi_1)\, p(x_1), p(x_2) \rangle

    Args:
        first: the poses of the first views.
        second: the poses of the second views.
        degrees: the rotation from each first view to its second view.
    """
    turned = SO2().compose(SO2().exp(torch.deg2rad(degrees).unsqueeze(-1)), first)
    return (1 - (turned * second).sum(-1)).mean()


def frame_consistency(poses: Float[Tensor, "batch 9"], same: Bool[Tensor, "batch batch"]) -> Float[Tensor, ""]:
    r"""The same for shapes, none of which is rotated: poses that belong together must be equal.

    .. math:: 1 - \mathrm{tr}(p_i^T p_j) / 3

    Args:
        poses: the pose of each view.
        same: which pairs belong together: two samples of one shape or, if all shapes of a class stand upright, two
            shapes of one class, so that a pose says how a shape is rotated from upright.
    """
    pairs = (same & ~torch.eye(len(poses), dtype=torch.bool, device=poses.device)).to(poses)
    return ((1 - poses @ poses.T / 3) * pairs).sum() / at_least(pairs.sum(), 1.0)


def known_angle_loss(
    poses: Float[Tensor, "batch 2"], degrees: Float[Tensor, " batch"], share: float
) -> Float[Tensor, ""]:
    r"""The loss of poses whose true angles are known: they must point there.

    .. math:: 1 - \langle p, e^{i\theta} \rangle

    An undefined pose costs 1; the gradient is finite for every pose.

    Args:
        poses: the pose of each view.
        degrees: its true angle, NaN where that is unknown.
        share: the share of views with a known angle, so that the loss is averaged over these; in a part of a batch that
            of the whole batch, so that the mean over equal parts is the loss of the whole.
    """
    known = ~degrees.isnan()
    target = SO2().exp(torch.deg2rad(degrees.nan_to_num()).unsqueeze(-1))
    return torch.where(known, 1 - (poses * target).sum(-1), 0.0).mean() / share


@dataclass(frozen=True)
class Objective:
    """The weighted sum of the losses; a weight of 0 leaves a loss out."""

    cross_entropy: float = 1.0
    spread: float = 0.3
    reconstruction: float = 0.0
    consistency: float = 0.3
    upright: bool = False
    """Whether all training shapes of a class stand in the same way, so that consistency compares their poses, too."""
    label_smoothing: float = 0.05
    margin: tuple[float, float] = (0.2, 0.9)
    """The margin of the spread loss at the start and at the end of the training."""

    def __post_init__(self) -> None:
        for name in ("cross_entropy", "spread", "reconstruction", "consistency"):
            check_not_negative(f"Objective: `{name}`", getattr(self, name))

    def __call__(
        self,
        output: CapsOutput,
        images: Float[Tensor, "batch ..."],
        labels: Int[Tensor, " batch"],
        degrees: Float[Tensor, " batch"],
        progress: float = 1.0,
    ) -> Float[Tensor, ""]:
        """The loss of a batch whose two halves show the same images, rotated by ``degrees``.

        Args:
            output: the network's output for the batch.
            images: the targets of the reconstruction; or the clouds, which have none.
            labels: the true classes.
            degrees: the rotation of each view, which only the consistency loss needs.
            progress: the share of the training that is done, from 0 to 1; it sets the margin.
        """
        total = output.scores.new_zeros(())
        if self.cross_entropy:
            smoothing = self.label_smoothing
            total = total + self.cross_entropy * F.cross_entropy(output.scores, labels, label_smoothing=smoothing)
        if self.spread:
            total = total + self.spread * spread_loss(output.activations, labels, spread_margin(progress, *self.margin))
        if self.reconstruction:
            if output.reconstruction is None:
                raise ValueError(
                    "Objective: `reconstruction` needs a network with a decoder: build it with decoder=True."
                )
            total = total + self.reconstruction * F.mse_loss(output.reconstruction, images)
        if self.consistency:
            total = total + self.consistency * self._consistency(output, labels, degrees)
        return total

    def _consistency(self, output: CapsOutput, labels: Tensor, degrees: Tensor) -> Float[Tensor, ""]:
        poses = true_poses(output, labels)
        planar = poses.shape[-1] == SO2.dim
        if self.upright and planar:
            raise ValueError(
                "Objective: `upright` is for shapes, whose poses are rotations of space, but these are rotations of "
                "the plane: use Objective(upright=False)."
            )
        if self.upright:
            return frame_consistency(poses, labels[:, None] == labels)
        if len(labels) % 2 or not torch.equal(*labels.chunk(2)):
            raise ValueError(
                "Objective: `consistency` compares two views of each image, so the second half of a batch must "
                f"show the images of the first half, rotated, but the labels are {labels.tolist()}: repeat the "
                "images, or use Objective(consistency=0)."
            )
        if planar:
            (first, second), (before, after) = poses.chunk(2), degrees.chunk(2)
            return pose_consistency(first, second, after - before)
        shape = torch.arange(len(labels), device=labels.device) % (len(labels) // 2)
        return frame_consistency(poses, shape[:, None] == shape)


def true_poses(output: CapsOutput, labels: Int[Tensor, " batch"]) -> Float[Tensor, "batch d"]:
    """The pose of each image's true class."""
    return output.poses[torch.arange(len(labels), device=labels.device), labels]
