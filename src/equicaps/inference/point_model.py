"""A trained network for shapes with its card, which takes clouds of points and shapes as people have them."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import roma
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from equicaps._tensor_files import checksum
from equicaps.groups import SO3
from equicaps.inference.batches import BATCH, answers_or_failures
from equicaps.inference.clouds import Clouds, prepared, read_clouds
from equicaps.inference.model import check_finite, eval_mode, on_cpu
from equicaps.inference.point_card import PointCard
from equicaps.inference.point_prediction import PointAnswer, PointPrediction
from equicaps.inference.prediction import Failure
from equicaps.models import CapsOutput, PointCapsNet

PointFileAnswer = tuple[Path, PointAnswer | Failure]


class PointModel(nn.Module):
    """A trained network that classifies shapes and predicts how they are rotated in space, with its card.

    For every rotation R of space, ``predict(x @ R.T)`` gives the labels and confidences of ``predict(x)`` and the
    rotations R ∘ ``rotations``, exactly up to rounding. The order of the points, where they are and how large the shape
    is change nothing; but of a file with more points than the card says, and of more than 16,384 points in any form,
    some are drawn by their order. A mirror image is another shape.

    Args:
        network: the trained network, which is put into eval mode.
        card: what is known about it.
    """

    def __init__(self, network: PointCapsNet, card: PointCard) -> None:
        super().__init__()
        self.network = network
        self.card = card
        self.eval()

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the scores."""
        return self.card.classes

    def forward(
        self, points: Float[Tensor, "batch n 3"], weights: Float[Tensor, "batch n"] | None = None
    ) -> CapsOutput:
        """The output of the network itself: scores, agreements and poses of every class."""
        output: CapsOutput = self.network(points, weights)
        return output

    def predict(self, clouds: Clouds, *, batch_size: int = BATCH) -> PointPrediction:
        """Predict the class, its confidence and the rotation of each cloud, whatever mode the model is in.

        Args:
            clouds: points of shape (n, 3) or (batch, n, 3), a list of clouds with different numbers of points, the
                path of a shape (OFF, OBJ, PLY, STL, XYZ, NPY) or a list of them, or surfaces. From surfaces, points
                are drawn with a fixed seed, so that the same shape always has the same answer.
            batch_size: how many clouds pass through the network at once; those with equal numbers of points do.
        """
        return self.interpret(self._outputs(read_clouds(clouds, self.card.points), batch_size))

    def predict_files(self, paths: Iterable[Path | str], *, batch_size: int = BATCH) -> Iterator[PointFileAnswer]:
        """Yield each file with its answer or, if there is none, the error; in order.

        The memory that this takes does not depend on the number of files.

        Args:
            paths: files of shapes.
            batch_size: how many files are read and answered at once.
        """

        def read(path: Path | str) -> Float[Tensor, "_ 3"] | OSError:
            try:
                return read_clouds(Path(path), self.card.points)[0]
            except OSError as error:
                return error

        def answers(clouds: Sequence[Float[Tensor, "_ 3"]]) -> PointPrediction:
            return self.interpret(self._outputs(list(clouds), batch_size))

        names, sources = itertools.tee(paths)
        return zip(map(Path, names), answers_or_failures(map(read, sources), answers, batch_size), strict=True)

    def interpret(self, output: CapsOutput) -> PointPrediction:
        """Convert the network's output to a prediction.

        Raises:
            UnansweredError: if anything that the network has computed is not finite.
        """
        output = output.map(on_cpu)
        check_finite(output, "cloud")
        confidence, labels = torch.softmax(output.scores, dim=-1).max(-1)
        rotations, errors = self.rotations(output, labels), None
        if self.card.angle_errors is not None:
            errors = confidence.new_tensor(self.card.angle_errors)[labels]
            errors = torch.where(rotations[:, 0, 0].isnan(), torch.nan, errors)
        return PointPrediction(labels, confidence, rotations, output, self.classes, errors)

    def rotations(self, output: CapsOutput, labels: Int[Tensor, " n"]) -> Float[Tensor, "n 3 3"]:
        """The rotations from the uprights of the given classes, p ∘ upright⁻¹; NaN where either is undefined."""
        group = SO3()
        poses, uprights = output.poses[torch.arange(len(labels)), labels].double(), self.card.upright_poses()[labels]
        found = group.compose(poses, group.inverse(uprights))
        nearest = group.mean(found.unsqueeze(-2), torch.ones_like(found[:, :1]))  # undefined where it is not unique
        defined = torch.stack([group.presence(entry) > 0.5 for entry in (poses, uprights, nearest)]).all(0)
        matrices = torch.full_like(found, torch.nan).unflatten(-1, (3, 3))
        if defined.any():
            matrices[defined] = roma.special_procrustes(found[defined].unflatten(-1, (3, 3)))
        return matrices.to(output.poses.dtype)

    def upright(self, clouds: Clouds, *, batch_size: int = BATCH) -> list[Float[Tensor, "_ 3"]]:
        """The points of each cloud, rotated back about their centroid by the predicted rotation.

        Without a pose a cloud is not rotated. A cloud and its rotations about any point give the same result, up to
        rounding and to a translation: the centroid stays where it was.
        """
        found = read_clouds(clouds, self.card.points)
        rotations = self.interpret(self._outputs(found, batch_size)).rotations
        return [rotate_back(cloud, rotation) for cloud, rotation in zip(found, rotations, strict=True)]

    def fingerprint(self) -> str:
        """A checksum of all that answers depend on: weights, architecture, and what the card says about shapes."""
        card = self.card
        settings = (self.network.body.config, card.classes, card.uprights, card.points, card.angle_errors)
        return checksum(repr(settings), self.network.state_dict())

    @torch.no_grad()
    def _outputs(self, clouds: list[Float[Tensor, "_ 3"]], batch_size: int) -> CapsOutput:
        """The network's outputs; only clouds with equal numbers of points share a batch, so none is padded."""
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, but is {batch_size}.")
        if not clouds:
            raise ValueError("there are no clouds; give at least one.")
        order = sorted(range(len(clouds)), key=lambda number: len(clouds[number]))
        outputs, parameter, start = [], next(self.parameters()), 0
        with eval_mode(self):
            while start < len(order):
                size = len(clouds[order[start]])
                part = [number for number in order[start : start + batch_size] if len(clouds[number]) == size]
                ready = torch.stack([prepared(clouds[number]) for number in part])
                outputs.append(self(ready.to(parameter)))
                start += len(part)
        places = torch.tensor(order, device=parameter.device).argsort()
        return CapsOutput.cat(outputs).map(lambda values: values[places])

    def __repr__(self) -> str:
        names = ", ".join(self.classes[:4]) + (", ..." if len(self.classes) > 4 else "")
        return (
            f"PointModel({self.card.name!r}: {len(self.classes)} classes ({names}), {self.card.points:,} points of a "
            f"surface, {self.network.parameter_counts()[0]:,} parameters)"
        )


def rotate_back(
    points: Float[Tensor, "n *corners 3"], rotation: Float[Tensor, "3 3"], centre: Float[Tensor, "3"] | None = None
) -> Float[Tensor, "n *corners 3"]:
    """Points, or corners of triangles, rotated by the inverse of a rotation about a centre; unchanged if it is NaN.

    The centre is by default the mean of the points.
    """
    if rotation.isnan().any():
        return points
    exact = points.double()
    centre = exact.reshape(-1, 3).mean(0) if centre is None else centre.to(exact)
    return ((exact - centre) @ rotation.to(exact) + centre).to(points)
