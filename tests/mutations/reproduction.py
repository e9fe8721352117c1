"""."""

from mutations.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = ()
