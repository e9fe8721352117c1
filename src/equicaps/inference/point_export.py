"""Export a network for shapes as a program that runs without Python, and check it on the spot.

The inputs are ``points``, clouds of shape (batch, n, 3) with any batch size and more than :func:`fewest_points` points,
and ``weights`` of shape (batch, n): 1 for a point, 0 for padding. The outputs are ``scores``, ``agreements`` and
``poses``, matrices row by row.
"""

import copy
import json
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from equicaps.data import Shapes
from equicaps.groups import SO3
from equicaps.inference.export import (
    Comparison,
    check_packages,
    compare_parts,
    exported,
    exported_bytes,
    onnx_content,
    run_exported,
    run_onnx,
)
from equicaps.inference.model import eval_mode
from equicaps.inference.point_card import MOST_POINTS, PointCard
from equicaps.inference.point_model import PointModel
from equicaps.models import CapsOutput, PointCapsNet
from equicaps.models.points import PointsConfig

INPUTS = ("points", "weights")
PADDED = 100
"""How many points of every other cloud are padding, when a program is compared with its network."""


class _ThreeOutputs(nn.Module):
    """The network without its reconstruction, which is None."""

    def __init__(self, network: PointCapsNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, points: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        output = self.network(points, weights)
        return output.scores, output.activations, output.poses


def export_points(model: PointModel, to: Literal["onnx", "torch"], data: Shapes) -> tuple[bytes, Comparison]:
    """Export a model in float32 and compare the program with the network on rotated shapes.

    Args:
        model: the model to export; it stays unchanged.
        to: the format.
        data: the shapes to compare on.

    Returns:
        The content of an ``.onnx`` or ``.pt2`` file, and the comparison.
    """
    check_packages(to)
    network = copy.deepcopy(model.network).cpu().float().eval()
    program = to_torch_export(network)
    if to == "onnx":
        content = onnx_content(program, INPUTS, notes_of(model.card, network))
        run = run_onnx(content, INPUTS)
    else:
        content, run = exported_bytes(program), run_exported(program)
    precise = copy.deepcopy(network).double()

    def program_on(packed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return run(packed[..., :3].contiguous(), packed[..., 3].contiguous())

    def answer(packed: Tensor) -> CapsOutput:
        output: CapsOutput = (precise if packed.dtype == torch.float64 else network)(packed[..., :3], packed[..., 3])
        return output

    parts = rotated_clouds(model, data)
    return content, compare_parts(answer, answer, program_on, parts, repeated=len(parts) - 1, group=SO3())


def rotated_clouds(model: PointModel, data: Shapes, batch: int = 64) -> list[Float[Tensor, "n points 4"]]:
    """Points of shapes with their weights in the last axis, rotated at random: some of them anew, then all."""
    least = fewest_points(model.network)
    found = []
    for count, points in ((1, least), (2, least + 3 * PADDED), (len(data), max(model.card.points, least + PADDED))):
        some, generator = data.some(min(count, len(data))), torch.Generator().manual_seed(count)
        clouds = some.surfaces.sample(points, generator)
        turned = clouds @ SO3().random(len(some), generator=generator).unflatten(-1, (3, 3)).mT
        weights = torch.ones_like(turned[..., :1])
        weights[1::2, -PADDED:] = 0
        found.append(torch.cat((turned, weights), -1))
    return found


def fewest_points(network: PointCapsNet) -> int:
    """One point more than the first layer has capsules at: the number that a program needs at least."""
    config = network.body.config
    return max(config.centres if isinstance(config, PointsConfig) else config.points) + 1


def to_torch_export(network: PointCapsNet) -> ExportedProgram:
    """Export a network as a program for ``torch.export.save``, for any batch size and any number of points.

    Raises:
        ExportError: if torch cannot export this network; the exporter's error is its cause.
    """
    least, parameter = fewest_points(network), next(network.parameters())
    example = torch.randn(2, least + 7, 3, generator=torch.Generator().manual_seed(0)).to(parameter)
    axes = {0: Dim("batch", min=1), 1: Dim("points", min=least, max=4 * MOST_POINTS)}
    with eval_mode(network):
        return exported(_ThreeOutputs(network).eval(), (example, torch.ones_like(example[..., 0])), (axes, axes))


def notes_of(card: PointCard, network: PointCapsNet) -> dict[str, str]:
    """What a user of an ONNX file needs to know, as strings."""
    return {"classes": json.dumps(card.classes), "uprights": json.dumps(card.uprights),
            "points": str(card.points), "fewest_points": str(fewest_points(network)),
            "rotation": "pose of the class (3x3, row by row) times its upright transposed, if neither is near zero",
            "convention": card.convention}  # fmt: skip
