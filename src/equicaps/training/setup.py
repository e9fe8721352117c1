"""From the name of a data set to a training that is ready to start."""

from dataclasses import dataclass

from equicaps.data import Dataset
from equicaps.data.by_name import NAMES, load_training_splits
from equicaps.images import Augmentation
from equicaps.models import PRESETS, Architecture, GroupCapsNet
from equicaps.models.sizes import legal_sizes
from equicaps.training.config import TrainConfig
from equicaps.training.evaluation import AnyAngle

FOLDER_SIZE = 64
"""The side to which the images of a folder are fitted by default."""


@dataclass(frozen=True)
class Setup:
    """The arguments of :func:`train`."""

    config: TrainConfig
    data: Dataset
    augmentation: Augmentation
    network: GroupCapsNet
    evaluation: AnyAngle


def set_up(data: str, config: TrainConfig, *, balance: bool) -> Setup:
    """Load a data set, or a folder of images, and build a network for it.

    With two views of each image, they are rotated by any angle; single views are not rotated.

    Args:
        data: the name of a data set, or a folder of classes.
        config: the settings; the number of classes and channels is taken from the data.
        balance: repeat the images of rarer classes.
    """
    side = config.model.image_size
    training, held_out = load_training_splits(data, size=side)
    if balance:
        training = training.balanced()
    config = config.changed({"model.num_classes": len(training.classes), "model.in_channels": training.images.shape[1]})
    augmentation = Augmentation(side, rotation=180.0 if config.views == 2 else 0.0)
    return Setup(config, training, augmentation, config.network(), AnyAngle(held_out, side))


def image_side(data: str, model: Architecture, size: int | None) -> int:
    """The side of the network's images: ``size`` or the next above it whose blocks quarter turns map onto themselves.

    Without ``size``, that of ``model`` for a data set by name, :data:`FOLDER_SIZE` for a folder of images.
    """
    if size is None:
        return model.image_size if data in NAMES else FOLDER_SIZE
    return legal_side(model, size)


def legal_side(model: Architecture, side: int) -> int:
    """``side`` or the next above it at which the preset of ``model`` is exact under quarter turns."""
    make, options = PRESETS[model.preset]
    return legal_sizes(make(**options).grid, side)[-1]  # type: ignore[arg-type] # bools and an order
