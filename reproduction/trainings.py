"""Every training on digits behind the tables and figures, by name."""

from dataclasses import KW_ONLY, dataclass

from equicaps.losses import Objective
from equicaps.models import Architecture
from equicaps.training import Budget, Intervals, Optimiser, TrainConfig
from reproduction.protocols import PROTOCOLS

QUICK_STEPS = 10
QUICK_IMAGES = 200
"""The number of training images that fix the zero angles in a quick run."""


@dataclass(frozen=True)
class DigitTraining:
    """A preset trained on a protocol, for a number of steps of 64 views each or for a number of CPU-minutes."""

    protocol: str
    preset: str
    steps: int | None = None
    _: KW_ONLY
    minutes: float | None = None
    consistency: float = 0.3
    reconstruction: float = 0.0
    spread: float = 0.3
    rate: float = 6e-3
    clip: float | None = None

    def config(self, *, quick: bool = False) -> TrainConfig:
        """All settings of this training."""
        protocol = PROTOCOLS[self.protocol]
        steerable = self.preset.startswith("steerable")
        return TrainConfig(
            Budget(steps=QUICK_STEPS) if quick else Budget(steps=self.steps, minutes=self.minutes),
            Architecture(
                self.preset,
                image_size=protocol.size,
                pad=not steerable and protocol.size % 32 > 0,  # five layers of 2x2 blocks need multiples of 32
                decoder=self.reconstruction > 0,
            ),
            Optimiser(rate=self.rate, clip=self.clip),
            Objective(
                spread=self.spread,
                consistency=self.consistency if protocol.views == 2 else 0.0,
                reconstruction=self.reconstruction,
            ),
            views=protocol.views,
            intervals=Intervals(evaluations=1, evaluation_images=QUICK_IMAGES) if quick else Intervals(),
        )


TRAININGS = {
    "rotated-steerable": DigitTraining("rotated", "steerable", 9000, reconstruction=2.0),
    "upright-steerable": DigitTraining("upright", "steerable", 3000, clip=1.0),
    "mnist_rot-steerable": DigitTraining("mnist_rot", "steerable", 3500),
    "affnist-steerable": DigitTraining("affnist", "steerable", 2000),
    "rotated-steerable-reconstruction": DigitTraining(
        "rotated", "steerable", 1500, consistency=0.0, reconstruction=2.0
    ),
    "rotated-steerable-labels_only": DigitTraining("rotated", "steerable", 1500, consistency=0.0),
    "rotated-steerable_capsules": DigitTraining("rotated", "steerable_capsules", 2500),
    "mnist_rot-steerable_capsules": DigitTraining("mnist_rot", "steerable_capsules", 2000),
    "affnist-steerable_capsules": DigitTraining("affnist", "steerable_capsules", 2000),
    "rotated-steerable_cnn": DigitTraining("rotated", "steerable_cnn", 1000, consistency=0.0, spread=0.0),
    "mnist_rot-steerable_cnn": DigitTraining("mnist_rot", "steerable_cnn", 800, consistency=0.0, spread=0.0),
    "affnist-steerable_cnn": DigitTraining("affnist", "steerable_cnn", 700, consistency=0.0, spread=0.0),
    "rotated-plain_cnn": DigitTraining("rotated", "plain_cnn", 2000, consistency=0.0, spread=0.0),
    "mnist_rot-plain_cnn": DigitTraining("mnist_rot", "plain_cnn", 1600, consistency=0.0, spread=0.0),
    "affnist-plain_cnn": DigitTraining("affnist", "plain_cnn", 1000, consistency=0.0, spread=0.0),
    "upright-plain_cnn": DigitTraining("upright", "plain_cnn", 1500, spread=0.0),
    "rotated-paper": DigitTraining("rotated", "paper", 800, spread=1.0, rate=3e-3),
    "rotated-capsules_only": DigitTraining("rotated", "capsules_only", 800, spread=1.0, rate=3e-3),
    "rotated-steerable-short": DigitTraining("rotated", "steerable", 800),
    "rotated-steerable-minutes": DigitTraining("rotated", "steerable", minutes=15.0),
}
"""Trainings by name, roughly in order of importance."""
