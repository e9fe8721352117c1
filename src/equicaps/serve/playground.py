"""Everything the page shows, computed from one or more models."""

import time
from collections.abc import Sequence
from functools import cached_property, partial

import torch

from equicaps.data import embedded_digits
from equicaps.images import rotate
from equicaps.images.background import as_known
from equicaps.inference import PoseModel
from equicaps.serve.batches import each_answered
from equicaps.serve.messages import About, Picture, Question, Reply
from equicaps.serve.pictures import centred_digit, fitted, read_upload, to_bytes
from equicaps.serve.shape_playground import ShapePlayground
from equicaps.serve.shown_model import ShownModel

DIGITS_PER_CLASS = 2


class Playground:
    """Models, for comparison a plain CNN, and on a second tab a model of shapes.

    Args:
        model: the capsule network to play with.
        plain: a network without poses for the same classes; None to show the capsules alone.
        others: more capsule networks, between which and ``model`` the user can switch.
        shapes: what the second tab shows; None for a page without it.
    """

    def __init__(
        self,
        model: PoseModel,
        plain: PoseModel | None = None,
        others: Sequence[PoseModel] = (),
        shapes: ShapePlayground | None = None,
    ) -> None:
        if plain is not None and plain.classes != model.classes:
            raise ValueError(f"Playground: {plain.card.name} and {model.card.name} must have the same classes.")
        for other in others:
            if not interchangeable(model, other):
                raise ValueError(
                    f"Playground: to switch between {model} and {other}, they must have the same classes and pictures "
                    f"of the same shape, not {_frame(model)} and {_frame(other)}."
                )
        self.plain, self.classes, self.shapes = plain, model.classes, shapes
        self.side, self.channels, self.background = model.format.frame, model.format.channels, model.format.background
        self.models = {each.card.name: ShownModel(each) for each in (model, *others)}
        if len(self.models) <= len(others):
            names = ", ".join(each.card.name for each in (model, *others))
            raise ValueError(f"Playground: to switch between models, they must have different names, not {names}.")

    @property
    def pixel_count(self) -> int:
        """The number of values in a picture."""
        return self.channels * self.side**2

    def about(self) -> About:
        """A summary of the models; the first is the one to start with."""
        return About(
            models=[shown.about() for shown in self.models.values()],
            classes=list(self.classes),
            channels=self.channels,
            side=self.side,
            digits=self.classes == tuple("0123456789"),
            plain=self.plain is not None,
            shapes=self.shapes.about() if self.shapes else None,
        )

    @cached_property
    def digits(self) -> list[Picture]:
        """Embedded test digits, :data:`DIGITS_PER_CLASS` of each class; none for a model of other classes."""
        if not self.about().digits:
            return []
        found, digits = [], embedded_digits("test")
        for label, name in enumerate(digits.classes):
            for image in digits.images[digits.labels == label][:DIGITS_PER_CLASS]:
                found.append(Picture(to_bytes(fitted(image, self.channels, self.side)), name))
        return found

    def picture(self, content: bytes, *, centre: bool) -> Picture:
        """An uploaded image file, inverted if necessary and resized; with ``centre``, laid out like a digit of MNIST.

        Raises:
            DamagedFileError: if it cannot be read.
            ValueError: if nothing is drawn on it.
        """
        (image,), _ = as_known(read_upload(content).unsqueeze(0), self.background)
        return Picture(to_bytes((centred_digit if centre else fitted)(image, self.channels, self.side)))

    def answers(self, questions: Sequence[Question]) -> list[Reply | Exception]:
        """Rotate each picture (quarter turns only move pixels) and run its model and the plain CNN on it.

        Pictures for the same model pass through it together, which changes answers by rounding only. In place of a
        question to which a network has no finite answer stands an :class:`UnansweredError`.
        """
        replies: dict[int, Reply | Exception] = {}
        for name, shown in self.models.items():
            places = [k for k, question in enumerate(questions) if (question.model or next(iter(self.models))) == name]
            found = each_answered(partial(self._replies, shown), [questions[k] for k in places])
            replies |= zip(places, found, strict=True)
        return [replies[k] for k in range(len(questions))]

    @torch.inference_mode()
    def _replies(self, shown: ShownModel, questions: Sequence[Question]) -> list[Reply]:
        started = time.thread_time()
        pixels = torch.tensor([question.pixels for question in questions])
        images = pixels.reshape(len(questions), self.channels, self.side, self.side) / 255
        rotated = rotate(images, torch.tensor([question.degrees for question in questions]))
        explained = shown.explain(rotated, torch.tensor([question.pose_degrees for question in questions]))
        plain = list(self.plain.predict(rotated)) if self.plain else [None] * len(questions)
        pictures = [to_bytes(image) for image in rotated]
        cost = round(1000 * (time.thread_time() - started) / len(questions), 1)
        return [
            Reply(image, capsules, compared, layers, reconstruction, cost)
            for image, (capsules, layers, reconstruction), compared in zip(pictures, explained, plain, strict=True)
        ]


def interchangeable(a: PoseModel, b: PoseModel) -> bool:
    """Whether two models name the same classes and take the same pictures, so that the page can switch between them."""
    return (a.classes, _frame(a)) == (b.classes, _frame(b))


def _frame(model: PoseModel) -> str:
    return f"{model.format.channels} x {model.format.frame} x {model.format.frame}"
