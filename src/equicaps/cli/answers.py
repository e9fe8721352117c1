"""What the commands that answer file after file share, whether these are images or shapes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import track

from equicaps.inference import Answer, Card, PointAnswer, PointCard
from equicaps.inference.prediction import Failure

Answered = TypeVar("Answered")
Content = TypeVar("Content")
Failures = list[tuple[Path, Failure]]
"""The files without a result, and why."""


def each_answer(
    console: Console,
    answers: Iterable[tuple[Path, Answered | Failure]],
    count: int,
    failures: Failures,
    read: Callable[[Path, Answered], Content],
    *,
    what: str = "reading",
) -> Iterator[tuple[Path, Answered, Content]]:
    """Every file with its answer and with what ``read`` makes of both, behind a progress bar.

    Files without an answer go into ``failures``, and so do those that ``read`` cannot read: they have been changed or
    removed since they were predicted.
    """
    for file, answer in track(answers, what, count, console=console, disable=not console.is_terminal):
        if isinstance(answer, Failure):
            failures.append((file, answer))
            continue
        try:
            content = read(file, answer)
        except OSError as error:
            failures.append((file, error))
            continue
        yield file, answer, content


def entries(rows: Sequence[tuple[Path, Answer | PointAnswer]], pictures: Mapping[Path, Path]) -> list[dict[str, Any]]:
    """The answers for a JSON document, each with its file and, if there is one, its picture."""
    return [
        {"file": str(file), **asdict(answer), **({"saved": str(pictures[file])} if file in pictures else {})}
        for file, answer in rows
    ]


def document(
    card: Card | PointCard, kind: str, answered: list[dict[str, Any]], failures: Failures, **others: Any
) -> dict[str, Any]:
    """The JSON document of a command: ``kind`` (images or shapes) has what was answered, ``errors`` what was not."""
    errors = [{"file": str(file), "error": str(failure)} for file, failure in failures]
    return {"model": card.name, "convention": card.convention, **others, kind: answered, "errors": errors}
