"""What the second tab shows, computed from a model of shapes."""

import time
from collections.abc import Sequence
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from equicaps.data import decode_shape, solid_shapes
from equicaps.inference import PointModel
from equicaps.inference.clouds import prepared, read_clouds
from equicaps.serve.batches import each_answered
from equicaps.serve.messages import AboutShapes, ShapePoints, ShapeQuestion, ShapeReply

EXAMPLES = 10
"""How many shapes there are to choose from: two of each class of the generator."""
DIGITS = 6
"""Decimals of the coordinates that the page gets. It rotates them without rounding."""


class ShapePlayground:
    """A model of shapes, and shapes to rotate.

    Args:
        model: the model.
    """

    def __init__(self, model: PointModel) -> None:
        self.model = model
        self._solids = solid_shapes(EXAMPLES)

    @property
    def most_points(self) -> int:
        """The largest number of points in a question: so many are drawn from a surface."""
        return self.model.card.points

    def about(self) -> AboutShapes:
        """A summary of the model."""
        card = self.model.card
        return AboutShapes(card.name, card.task, list(card.classes), self.most_points, self._solids.name)

    @cached_property
    def examples(self) -> list[ShapePoints]:
        """Shapes of a seeded generator. The model need not know their classes."""
        clouds = read_clouds(self._solids.surfaces, self.most_points)
        names = [self._solids.classes[label] for label in self._solids.labels.tolist()]
        return [ShapePoints(_listed(cloud), name) for cloud, name in zip(clouds, names, strict=True)]

    def shape(self, content: bytes, kind: str) -> ShapePoints:
        """The points of an uploaded file: as many are drawn from it as :meth:`PointModel.predict` would draw.

        Args:
            content: of the file.
            kind: its suffix, without the dot.

        Raises:
            DamagedFileError: if it cannot be read.
        """
        [cloud] = read_clouds(decode_shape(content, "the upload", f".{kind}"), self.most_points)
        return ShapePoints(_listed(cloud))

    def answers(self, questions: Sequence[ShapeQuestion]) -> Sequence[ShapeReply | Exception]:
        """The model's answers; those with equal numbers of points pass through it together.

        In place of a question to which it has no finite answer stands an :class:`UnansweredError`.
        """
        return each_answered(self._replies, questions)

    def _replies(self, questions: Sequence[ShapeQuestion]) -> list[ShapeReply]:
        started = time.thread_time()
        clouds = [torch.tensor(question.points, dtype=torch.float64) for question in questions]
        found = list(self.model.predict(clouds))
        cost = round(1000 * (time.thread_time() - started) / len(questions), 1)
        return [ShapeReply(answer, cost) for answer in found]


def _listed(cloud: Float[Tensor, "n 3"]) -> list[list[float]]:
    return [[round(x, DIGITS) for x in point] for point in prepared(cloud).tolist()]
