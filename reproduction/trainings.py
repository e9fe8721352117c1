"""Every training on digits behind the tables and figures, by name."""

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

from equicaps.images import ROTATED, UPRIGHT, Augmentation
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
    cross_entropy: float = 1.0
    rate: float = 6e-3
    clip: float | None = None
    views: int | None = None
    """The number of views of each image in a batch, if not that of the protocol."""
    augmentation: Augmentation | None = None
    """If not that of the protocol."""
    seed: int = 0
    watched: bool = True
    """Whether some test images are looked at during the training, too; otherwise only at the end, once."""

    def config(self, *, quick: bool = False) -> TrainConfig:
        """All settings of this training."""
        protocol = PROTOCOLS[self.protocol]
        views = self.views or protocol.views
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
                cross_entropy=self.cross_entropy,
                spread=self.spread,
                consistency=self.consistency if views == 2 else 0.0,
                reconstruction=self.reconstruction,
            ),
            views=views,
            seed=self.seed,
            intervals=self._intervals(quick),
        )

    def _intervals(self, quick: bool) -> Intervals:
        if quick:
            return Intervals(evaluations=1, evaluation_images=QUICK_IMAGES)
        return Intervals() if self.watched else Intervals(evaluations=1)


PAPER_STEPS = 35_156
"""In batches of 64: 2.25 million views, the paper's 45 epochs of 50,000 images."""
SHORT_STEPS = 12_500
"""800,000 views: 80 epochs of MNIST-rot; variants of the paper's network are compared after as many."""
RESAMPLED = replace(ROTATED, shift=0.5, interpolation="mixed")
"""Rotated digits whose grid moves by up to half a pixel, interpolated in two ways: Sobel's poses depend on both."""

JITTERED = replace(UPRIGHT, shift=0.5, interpolation="mixed")
"""Upright digits, resampled in the same way."""


def of_paper(preset: str = "paper", steps: int | None = PAPER_STEPS, **settings: Any) -> DigitTraining:
    """The paper's network on rotated digits with the paper's losses: spread loss and cross entropy."""
    given: dict[str, Any] = {"protocol": "rotated", "augmentation": RESAMPLED, "views": 1, "spread": 1.0}
    given["consistency"] = 0.0
    return DigitTraining(preset=preset, steps=steps, watched=False, **given | settings)


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
    "rotated-paper": of_paper(reconstruction=10.0),
    "rotated-capsules_only": of_paper("capsules_only", cross_entropy=0.0),
    "rotated-paper-labels_only": of_paper(steps=SHORT_STEPS),
    "rotated-paper-seed1": of_paper(reconstruction=10.0, seed=1),
    "rotated-paper-seed2": of_paper(reconstruction=10.0, seed=2),
    "mnist_rot-paper": of_paper(steps=SHORT_STEPS, protocol="mnist_rot", reconstruction=10.0),
    "mnist_rot-capsules_only": of_paper("capsules_only", 25_000, protocol="mnist_rot", cross_entropy=0.0),
    "affnist-paper": of_paper(steps=SHORT_STEPS, protocol="affnist", augmentation=None),
    "affnist-capsules_only": of_paper(
        "capsules_only", SHORT_STEPS, protocol="affnist", augmentation=None, cross_entropy=0.0
    ),
    "upright-paper": of_paper(steps=25_000, protocol="upright", augmentation=JITTERED),
    "rotated-plain_cnn": of_paper("plain_cnn", spread=0.0),
    "rotated-plain_cnn-minutes": of_paper("plain_cnn", None, minutes=118.0, spread=0.0),
    "mnist_rot-plain_cnn": of_paper("plain_cnn", SHORT_STEPS, protocol="mnist_rot", spread=0.0),
    "affnist-plain_cnn": of_paper("plain_cnn", SHORT_STEPS, protocol="affnist", augmentation=None, spread=0.0),
    "upright-plain_cnn": of_paper("plain_cnn", 25_000, protocol="upright", augmentation=JITTERED, spread=0.0),
    "rotated-paper-consistency": of_paper(steps=SHORT_STEPS, reconstruction=10.0, consistency=0.3, views=2),
    "rotated-paper-gaussian": of_paper("paper_gaussian", SHORT_STEPS),
    "rotated-paper-pooled": of_paper("paper_pooled", SHORT_STEPS),
    "rotated-paper-iterated": of_paper("paper_iterated", SHORT_STEPS),
    "rotated-steerable-short": DigitTraining("rotated", "steerable", 800),
    "rotated-steerable-minutes": DigitTraining("rotated", "steerable", minutes=15.0),
}
"""Trainings by name, roughly in order of importance."""
