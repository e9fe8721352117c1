"""Damaged files are all named at once: nobody should have to start again for each of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from equicaps._checks import printable
from equicaps.errors import DamagedFilesError, EquicapsError, MissingPackageError

S = TypeVar("S")
T = TypeVar("T")

NAMED = 10
"""Of more damaged files than that, only the first ones are named."""


def of_each(function: Callable[[S], T], items: Iterable[S], kind: str = "images") -> list[T]:
    """What a function returns for each of the items; if it refuses any, one error about all of them."""
    found, damaged = [], []
    for item in items:
        result = or_error(function, item)
        if isinstance(result, EquicapsError):
            damaged.append(result)
        else:
            found.append(result)
    refuse(damaged, of=len(found) + len(damaged), kind=kind)
    return found


def or_error(function: Callable[[S], T], item: S) -> T | EquicapsError:
    """What a function returns, or the error that it raises, unless a package is missing."""
    try:
        return function(item)
    except MissingPackageError:
        raise  # the file is not to blame
    except EquicapsError as error:
        return error


def refuse(damaged: Sequence[EquicapsError], *, of: int, kind: str = "images") -> None:
    """Raise one error about all damaged ones of so many images or shapes, if there are any.

    Names are escaped, because a name with a line break could pass for a line of the message.
    """
    if len(damaged) == 1:
        raise damaged[0]
    if damaged:
        named = "".join(f"\n  {printable(str(error))}" for error in damaged[:NAMED])
        more = f"\n  and {len(damaged) - NAMED} more" if len(damaged) > NAMED else ""
        raise DamagedFilesError(f"{len(damaged)} of {of} {kind} cannot be used; repair or remove them:{named}{more}")
