"""Mistakes of the kind that a tired person makes, each of which the tests must notice; ``mutants.py`` tries them."""

from mutations import data, images, inference, losses, mathematics, reproduction, training

MUTANTS = (
    *mathematics.MUTANTS,
    *losses.MUTANTS,
    *images.MUTANTS,
    *data.MUTANTS,
    *inference.MUTANTS,
    *training.MUTANTS,
    *reproduction.MUTANTS,
)
