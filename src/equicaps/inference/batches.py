"""The answers of a model to one file after another, whether these are images or shapes, computed in batches."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from equicaps.errors import UnansweredError
from equicaps.inference.prediction import Failure

BATCH = 32
"""How many files pass through a network at once."""

Content = TypeVar("Content")
Answered = TypeVar("Answered")


def answers_or_failures(
    contents: Iterable[Content | OSError], answer: Callable[[Sequence[Content]], Iterable[Answered]], batch_size: int
) -> Iterator[Answered | Failure]:
    """The answer to each file or why there is none, in order; only one batch is in memory.

    Args:
        contents: what was read from each file, or why it could not be read.
        answer: answers a batch, or raises an :class:`UnansweredError` if one of it has no answer.
        batch_size: how many files are answered at once.
    """
    remaining = iter(contents)
    while batch := list(itertools.islice(remaining, batch_size)):
        readable = [content for content in batch if not isinstance(content, OSError)]
        answers = iter(_each(readable, answer))
        for content in batch:
            yield content if isinstance(content, OSError) else next(answers)


def _each(
    contents: Sequence[Content], answer: Callable[[Sequence[Content]], Iterable[Answered]]
) -> list[Answered | Failure]:
    """One that has no answer does not keep the others from theirs."""
    try:
        return list(answer(contents)) if contents else []
    except UnansweredError as error:
        return [error] if len(contents) == 1 else [_each([content], answer)[0] for content in contents]
