"""What a mutant is."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake: a passage that occurs once in a file, and what stands there instead.

    Attributes:
        name: the mistake in a few words.
        file: relative to the root of the repository.
        before: the passage.
        after: the passage with the mistake.
        tests: the files below ``tests`` that must notice it, the mirrored one first; of slow files, single tests.
    """

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def mutants_of(file: str, tests: tuple[str, ...], *changes: tuple[str, str, str]) -> tuple[Mutant, ...]:
    """The mutants of one file, each as a name, the passage before and the passage after."""
    return tuple(Mutant(name, file, before, after, tests) for name, before, after in changes)
