"""From the name of a data set to a training that is ready to start."""

import math
from dataclasses import dataclass
from pathlib import Path

from equicaps.data import Dataset, Shapes
from equicaps.data.by_name import NAMES, load_training_splits, survey
from equicaps.data.reduced import Watch
from equicaps.images import Augmentation
from equicaps.models import PRESETS, Architecture, GroupCapsNet, PointCapsNet
from equicaps.models.sizes import legal_sizes
from equicaps.training.config import Budget, TrainConfig
from equicaps.training.evaluation import AnyAngle, Evaluation, LookOnce
from equicaps.training.sampler import Augment

PIXELS_PER_SECOND = 200 * 32**2
"""The pixels that one thread trains on in a second, with `steerable`, roughly: enough to choose a side in advance."""
ENOUGH_VIEWS = 30
"""How often each image of a folder should be seen at least; a smaller side is chosen before that is given up."""
FEWEST_WATCHED = 20
"""Fewer validation images say too little to be worth holding them back."""
UNEVEN, EVENED = 3.0, 0.5
"""If one class has more than so many times the images of another, rarer ones are repeated, with this power."""
SIDES = (32, 96)
"""The smallest and the largest side to which the images of a folder are brought by default."""


@dataclass(frozen=True)
class Setup:
    """The arguments of :func:`train`."""

    config: TrainConfig
    data: Dataset | Shapes
    augmentation: Augment
    network: GroupCapsNet | PointCapsNet
    evaluation: Evaluation
    validation: Dataset | Shapes | None


def set_up(
    data: str, config: TrainConfig, *, balance: bool, angles: Path | None = None, watch: Watch | None = None
) -> Setup:
    """Load a data set, or a folder of images, and build a network for it.

    With two views of each image, they are rotated by any angle; single views are not rotated. A tenth of the training
    images, at most as many as an evaluation looks at, is held back to watch the training; the images that it is tested
    on are looked at once, at its end. Of very few images none is held back. If one class has more than :data:`UNEVEN`
    times the images of another, images of rarer classes are repeated (:meth:`.Dataset.balanced`). The
    last evaluation measures errors of classes that look the same after a part of a turn modulo that part.

    Args:
        data: the name of a data set, or a folder of classes.
        config: the settings; the number of classes and channels is taken from the data.
        balance: repeat the images of rarer classes until all are equally frequent.
        angles: a list of the known angles of some or all images of a folder.
        watch: is called while the images of a folder are decoded, see :func:`load_folder`.
    """
    side = config.image_model.image_size
    training, held_out = load_training_splits(data, size=side, angles=angles, watch=watch)
    count = min(len(training) // 10, config.intervals.evaluation_images or len(training))
    rest, watched = training.hold_back(count)
    validation = watched if len(watched) >= FEWEST_WATCHED else None
    training = training if validation is None else rest
    sizes = [size for size in training.class_sizes() if size]
    if balance or max(sizes) > UNEVEN * min(sizes):
        training = training.balanced(1.0 if balance else EVENED)
    test: Evaluation = AnyAngle(held_out, side, confusion=True, zeros_from=training, symmetries_from=training)
    if validation is None:
        evaluation, config = test, config.changed({"intervals.evaluations": 1})
    else:
        evaluation = LookOnce(AnyAngle(validation, side, zeros_from=training), test)
        config = config.changed({"intervals.evaluation_images": len(validation)})
    config = config.changed({"model.num_classes": len(training.classes), "model.in_channels": training.images.shape[1]})
    augmentation = Augmentation(side, rotation=180.0 if config.views == 2 else 0.0)
    network = config.network()
    assert isinstance(network, GroupCapsNet)
    return Setup(config, training, augmentation, network, evaluation, validation)


def image_side(data: str, model: Architecture, size: int | None, budget: Budget) -> int:
    """The side of the network's images, for which quarter turns map its blocks onto themselves.

    With ``size``, that or the next one above. Without, that of ``model`` for a data set by name; for a folder the one
    nearest to its images' own, or a smaller one if the budget would not suffice to see each image
    :data:`ENOUGH_VIEWS` times. Images that are smaller than that are padded.
    """
    if size is not None:
        return legal_side(model, size)
    if data in NAMES:
        return model.image_size
    smallest, largest = SIDES
    found = survey(data)
    near = min(max(found.side, smallest), largest)
    nearest = min(reversed(_legal(model, near)), key=lambda side: abs(side - near))
    if budget.most_minutes is None:
        return nearest
    affordable = int(math.sqrt(60 * budget.most_minutes * PIXELS_PER_SECOND / (ENOUGH_VIEWS * found.images)))
    return min(nearest, _legal(model, max(smallest, affordable))[0])


def legal_side(model: Architecture, side: int) -> int:
    """``side`` or the next above it at which the preset of ``model`` is exact under quarter turns."""
    return _legal(model, side)[-1]


def _legal(model: Architecture, near: int) -> list[int]:
    make, options = PRESETS[model.preset]
    return legal_sizes(make(**options).grid, near)  # type: ignore[arg-type] # bools and an order
