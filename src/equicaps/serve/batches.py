"""What waits together is computed together."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from equicaps.errors import UnansweredError
from equicaps.serve.memory import give_back
from equicaps.serve.refused import Refused

REST = 1.0
"""Seconds without a question after which the memory of the last ones is returned."""

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Batches(Generic[Question, Answer]):
    """A bounded queue of questions, which are answered in a thread, all that wait together at once.

    Args:
        answer: computes the answers, or the errors, to some questions; it is never called twice at the same time.
        batch: the most questions that it gets at once.
        waiting: the most questions that wait. Those that are being answered do not count.
    """

    def __init__(
        self, answer: Callable[[Sequence[Question]], Sequence[Answer | Exception]], *, batch: int, waiting: int
    ) -> None:
        self._answer, self.batch, self.waiting = answer, batch, waiting
        self._queue: deque[tuple[Question, asyncio.Future[Answer]]] = deque()
        self._work: asyncio.Task[None] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1)  # always the same: each thread keeps freed memory for itself

    async def ask(self, question: Question) -> Answer:
        """The answer, or the error, to a question.

        Raises:
            Refused: if too many are waiting.
        """
        if len(self._queue) >= self.waiting:
            raise Refused(503, "too many others are waiting for an answer: try again in a second.")
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._queue.append((question, answer))
        if self._work is None or self._work.done():
            self._work = asyncio.create_task(self._answer_all())
        return await answer

    async def _answer_all(self) -> None:
        """Answer until nobody waits any more."""
        loop = asyncio.get_running_loop()
        if self._rest is not None:
            self._rest.cancel()
        while self._queue:
            taken = [self._queue.popleft() for _ in range(min(self.batch, len(self._queue)))]
            batch = [(question, answer) for question, answer in taken if not answer.cancelled()]
            try:
                found = await loop.run_in_executor(self._thread, self._answer, [question for question, _ in batch])
            except Exception as error:
                found = [error] * len(batch)
            for (_, answer), result in zip(batch, found, strict=True):
                if answer.cancelled():
                    continue
                if isinstance(result, Exception):
                    answer.set_exception(result)
                else:
                    answer.set_result(result)
        self._rest = loop.call_later(REST, give_back)


def each_answered(
    answer: Callable[[Sequence[Question]], Sequence[Answer]], questions: Sequence[Question]
) -> Sequence[Answer | Exception]:
    """The answers, or the errors; a question that has no finite answer does not keep the others from theirs."""
    try:
        return answer(questions) if questions else []
    except UnansweredError as error:
        if len(questions) == 1:
            return [error]
        return [found for question in questions for found in each_answered(answer, [question])]
