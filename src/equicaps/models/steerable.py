"""The flagship architecture: steerable capsules in every layer (``docs/steerable.md``)."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from equicaps._checks import check_parts
from equicaps.functional import Capsules
from equicaps.functional.steerable import Mirror
from equicaps.models.output import CapsOutput, identity_poses
from equicaps.nn.steerable_capsules import SteerableCapsules2d
from equicaps.numerics import NO_EVIDENCE, safe_reciprocal


@dataclass(frozen=True)
class Block:
    """The shape of one layer of steerable capsules."""

    capsules: int
    kernel_size: int
    stride: int = 1
    pool: bool = False
    padding: int | None = None
    order: int = 2


@dataclass(frozen=True)
class SteerableConfig:
    """The layers of a steerable network.

    Without ``features`` only the capsules remain, and an activation is the agreement of the votes. Without ``poses``
    it is an ordinary CNN. If ``mirror`` is "ignore", mirroring an image leaves scores and agreements unchanged and
    mirrors the poses, which the network therefore needs.
    """

    num_classes: int = 10
    in_channels: int = 1
    blocks: tuple[Block, ...] = (
        Block(16, 6, stride=2, padding=2),
        Block(24, 3),
        Block(48, 5, pool=True),
        Block(64, 4, pool=True, padding=0),
    )
    in_order: int = 1
    features: bool = True
    poses: bool = True
    mirror: Mirror = "distinguish"

    def __post_init__(self) -> None:
        check_parts(self.features, self.poses)
        if self.mirror == "ignore" and not self.poses:
            raise ValueError('a network with `mirror="ignore"` needs `poses`, but they are off.')

    def grid(self, side: int) -> int | None:
        """The side of the last grid for an image of this side; None where a quarter turn would not be exact."""
        for block in self.blocks:
            padding = (block.kernel_size - 1) // 2 if block.padding is None else block.padding
            if block.pool and side % 2:
                return None
            rest = side // (1 + block.pool) + 2 * padding - block.kernel_size
            if rest < 0 or rest % block.stride:
                return None
            side = rest // block.stride + 1
        return side


class SteerableNet(nn.Module):
    """The steerable network, from images to class capsules.

    Images may have any legal size: the last layer's features and weighted poses are averaged over the grid before the
    class capsules.
    """

    def __init__(self, config: SteerableConfig) -> None:
        super().__init__()
        self.config = config
        self.layers = nn.ModuleList()
        width, order = config.in_channels, 0
        for number, block in enumerate(config.blocks, 1):
            self.layers.append(
                _layer(width, order, block, needs_pose=number < len(config.blocks), mirror=config.mirror)
            )
            width, order = block.capsules, config.in_order
        self.classes = SteerableCapsules2d(
            width, config.num_classes, 1, in_order=order, needs_pose=False, mirror=config.mirror
        )

    def capsules(self, images: Float[Tensor, "batch channels height width"]) -> list[Capsules]:
        """The capsules after every layer but the last."""
        current, after = Capsules(images.new_zeros(*images.shape, 2), images), []
        for layer in self.layers:
            current = self._step(layer, current)
            after.append(current)
        return after

    def forward(self, images: Float[Tensor, "batch channels height width"]) -> CapsOutput:
        """Scores, agreements and poses of the class capsules."""
        return self.answer(images, self.capsules(images))

    def answer(self, images: Float[Tensor, "batch channels height width"], capsules: list[Capsules]) -> CapsOutput:
        """The output of :meth:`forward`, computed from the images and their :meth:`capsules`."""
        last = average(capsules[-1])
        if self.config.features:
            at = None if self.config.poses else identity_poses(images, self.config.num_classes, 1, 1)
            (poses, agreement), scores = self.classes.vote_and_convolve(last, at)
        else:
            poses, agreement = self.classes.vote(last)
            scores = self.classes.norm(agreement)
        return CapsOutput(scores.flatten(1), agreement.flatten(1), poses.flatten(1, 3))

    def _step(self, layer: nn.Module, capsules: Capsules) -> Capsules:
        assert isinstance(layer, SteerableCapsules2d)
        if not self.config.features:
            return layer.vote(capsules)
        if self.config.poses:
            poses, activations = layer(capsules)
        else:
            size = [side // 2 if layer.pool else side for side in capsules.activations.shape[-2:]]
            size = [(side + 2 * layer.padding - layer.kernel_size) // layer.stride + 1 for side in size]
            poses, activations = layer(capsules, identity_poses(capsules.activations, layer.out_capsules, *size))
        return Capsules(poses, F.relu(activations))


def _layer(width: int, order: int, block: Block, *, needs_pose: bool, mirror: Mirror) -> SteerableCapsules2d:
    return SteerableCapsules2d(
        width, block.capsules, block.kernel_size, stride=block.stride, padding=block.padding, pool=block.pool,
        in_order=order, out_order=block.order, needs_pose=needs_pose, mirror=mirror,
    )  # fmt: skip


def average(capsules: Capsules) -> Capsules:
    """Average the capsules over the grid: the mean features, and the mean poses weighted by the features."""
    poses, activations = capsules
    feature = activations.mean((-2, -1), keepdim=True)
    weighted = (poses * activations.unsqueeze(-1)).mean((2, 3), keepdim=True)
    return Capsules(weighted * safe_reciprocal(feature, NO_EVIDENCE).unsqueeze(-1), feature)
